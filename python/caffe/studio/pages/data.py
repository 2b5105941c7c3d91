"""Sets of images: what is in them, and a model of them."""
import collections
import os
import pathlib
import re
import tempfile
from urllib.parse import quote

from nicegui import run, ui

from ... import InvalidArgument, zoo
from ..._counted import counted
from ...model_folder.datasets import open_dataset
from .. import charts, uploads
from ..messages import has_address, shown
from . import page, versions
from .looking import fill, gallery
from .removing import remove_button

_SHOWN = 60
_MOST_UPLOADED = 4 << 30  # bytes


@page("/data", "Data", "photo_library", 2)
def show(studio):
    ui.label("Data sets").classes("title")
    names = studio.workspace.folders()
    if not names:
        ui.label(f"There is no folder in {studio.workspace.root} yet. Copy one there with a folder of images for each class, or send a ZIP "
                 "file of it.").classes("soft")
    for name in names:
        with ui.row().classes("items-center panel w-full"):
            ui.icon("folder").props("aria-hidden=true")
            ui.link(name, f"/data/{quote(name)}")
    ui.label("Send a set").classes("title")
    ui.label("A ZIP file with a folder of images for each class, with images and boxes (VOC, COCO), or with the folders images and masks.").classes("soft")
    name = ui.input("Name of the set", value="photos").props("dense outlined")

    async def receive(event):
        wanted = (name.value or "").strip()
        try:
            if not re.fullmatch(r"\w[\w .-]*", wanted):
                raise InvalidArgument(f"'{wanted}' is not a name for a folder; use letters, digits, dashes and dots")
            os.makedirs(studio.workspace.path("uploads"), exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=studio.workspace.path("uploads"), suffix=".zip") as file:
                await event.file.save(file.name)
                await run.io_bound(uploads.unpack, file.name, studio.workspace.inside(wanted))
        except BaseException:
            event.sender.reset()  # or it would say that all is done
            raise
        ui.navigate.to(f"/data/{quote(wanted)}")

    ui.upload(label="ZIP file", auto_upload=True, max_files=1, max_file_size=_MOST_UPLOADED, on_upload=receive).props("accept=.zip flat bordered")


@page("/data/{name:path}")
async def show_one(studio, name):
    folder = pathlib.Path(studio.workspace.inside(name))
    with ui.row().classes("items-center"):
        ui.link("Data", "/data").classes("soft")
        ui.label(name).classes("title")
        if folder.is_dir():
            remove_button(studio, name, "/data")
    with ui.row().classes("items-center").props("role=status") as hint:
        ui.spinner()
        ui.label("Reading the names of all files; a large set takes a while.").classes("soft")
    try:
        dataset, images, counts, boxes = await run.io_bound(_look, folder)
    finally:
        hint.delete()
    with ui.row():
        for what, value in (("task", dataset.task), ("form", dataset.kind), ("images", f"{len(images):,}"), ("classes", dataset.num_shown)):
            with ui.column().classes("panel").style("gap: 0"):
                ui.label(what).classes("soft")
                ui.label(str(value)).classes("number")
    versions.show(studio, name)
    _new_model(studio, name, dataset)
    _preview(studio, folder, dataset, len(images))
    if counts or boxes:
        _balance(counts or boxes, "Images" if counts else "Boxes")
    with ui.row().classes("items-center"):
        ui.label("Images").classes("title")
        chosen = ui.select(["all", *sorted(counts)], value="all", on_change=lambda: browse(0)).props('dense outlined aria-label="Class"') if counts else None
        ui.button("Further", on_click=lambda: browse(place["begin"] + _SHOWN)).props("dense flat no-caps")
    place, gallery = {"begin": 0}, ui.element("div").classes("gallery")

    def browse(begin):
        of_class = [image for image in images if chosen is None or chosen.value == "all" or image.parent.name == chosen.value]
        place["begin"] = begin = begin if begin < len(of_class) else 0
        gallery.clear()
        step = max(1, len(of_class) // _SHOWN) if begin == 0 and (chosen is None or chosen.value == "all") else 1
        with gallery:
            for image in of_class[begin:begin + _SHOWN * step:step]:
                path = studio.workspace.relative(image)
                ui.html(f'<img loading="lazy" src="/thumbnail?path={quote(path)}" alt="{quote(image.name)}" title="{quote(path)}">', sanitize=False)

    browse(0)
    _broken(images)


def _look(folder):
    """The Dataset, its images, the number of images by class, where folders are classes, and of boxes by class."""
    dataset = open_dataset(folder)
    images = [image for image in dataset.images() if has_address(str(image))]
    is_by_folder = dataset.task == "classification" and {image.parent.name for image in images} <= set(dataset.classes)
    boxes = collections.Counter(box.name for item in (*dataset.items.values(), *dataset.val_items.values()) for box in item.boxes
                                ) if dataset.task == "detection" else {}
    return dataset, images, collections.Counter(image.parent.name for image in images) if is_by_folder else {}, boxes


def _balance(counts, what):
    ui.label(f"{what} of each class").classes("title")
    names = sorted(counts, key=lambda name: -counts[name])[:60]
    ui.echart(charts.themed({"animation": False, "aria": {"enabled": True}, "grid": {"left": 56, "right": 16, "top": 12, "bottom": 60}, "tooltip": {},
               "xAxis": {"type": "category", "data": names, "axisLabel": {"rotate": 40 if len(names) > 12 else 0}}, "yAxis": {"type": "value"},
               "series": [{"type": "bar", "data": [counts[name] for name in names], "color": charts.COLORS[0]}]})).style("width: 100%; height: 15rem")


def _preview(studio, folder, dataset, count):
    """Shows what a net would get in training, before there is a model: a sample is imported as `caffe new` does it."""
    async def look():
        await fill(place, lambda found: _show_preview(found, count), "preview", studio.program, folder, net.value or "", "")

    with ui.expansion("What training will see").classes("w-full panel"):
        with ui.row().classes("items-end"):
            net = ui.select({"": "the net chosen for the images", **_nets(dataset)}, value="", label="Net").props("dense outlined").style("min-width: 16rem")
            ui.button("Show", on_click=look).props("dense outline no-caps")
        place = ui.column().classes("w-full")


def _show_preview(found, count):
    of = f"a sample of {found['images']:,} of {count:,} images" if found["images"] < count else counted(count, "image")
    ui.label(f"{found['net']} on {found['side']} x {found['side']} pixels; mean of blue, green and red of {of}: "
             + ", ".join(f"{value:g}" for value in found["mean"])).classes("soft")
    gallery(found["pictures"], found["labels"])


def _nets(dataset):
    return {net.name: f"{net.name}: {net.summary}" for net in zoo.nets().values() if net.task == dataset.task}


def _broken(images):
    """A button that looks for files that cannot be read."""
    result = ui.column()

    async def look():
        found = await run.io_bound(_unreadable, images)
        result.clear()
        with result:
            ui.label(f"All {len(images):,} images can be read." if not found else f"{len(found)} of {len(images):,} files cannot be read:")
            for text in found[:200]:
                ui.label(shown(text)).classes("soft")

    ui.button("Look for files that cannot be read", on_click=look).props("dense flat no-caps")


def _unreadable(images):
    from PIL import Image

    found = []
    for path in images:
        try:
            if not path.is_file():  # a pipe would never end
                raise OSError("is not a file")
            with Image.open(path) as image:
                image.load()
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            found.append(f"{path}: {error}")
    return found


def _new_model(studio, name, dataset):
    """The form that makes a model and trains it."""
    with ui.expansion("Make a model", value=True).classes("w-full panel"), ui.row().classes("items-end"):
        model = ui.input("Folder", value=f"{name}_model").props("dense outlined")
        net = ui.select({"": "chosen for the images", **_nets(dataset)}, value="", label="Net").props("dense outlined").style("min-width: 16rem")
        epochs = ui.number("Epochs", placeholder="chosen", precision=0).props("dense outlined").style("width: 7rem")
        size = ui.number("Pixels", placeholder="chosen", precision=0).props("dense outlined").style("width: 7rem")
        share = ui.number("For testing, %", value=15, min=1, max=99, precision=0).props("dense outlined").style("width: 8rem")
        weights = ui.select({"": "nothing", **{name: name for name in studio.workspace.weights() if name.endswith("_best.caffemodel")}}, value="", label="Starts from").props("dense outlined").style("min-width: 10rem")
        precision = ui.select({"": "float", "bf16": "bfloat16", "fp16": "float16"}, value="", label="Computes in").props("dense outlined").style("width: 8rem")

        async def make():
            folder = studio.workspace.inside(model.value or "")
            if os.path.lexists(folder):
                raise InvalidArgument(f"{model.value}: already exists; give another folder")
            for what, number in (("Epochs", epochs.value), ("Pixels", size.value)):
                if number is not None and number < 1:
                    raise InvalidArgument(f"{what} is {number:g}; give 1 or more")
            await run.io_bound(versions.note_model, studio, name, studio.workspace.relative(folder))
            made = studio.workspace.relative(folder)
            words = [studio.program, "new", studio.workspace.relative(studio.workspace.inside(name)), f"--output={made}",
                     f"--val={int(share.value or 15)}%"]
            words += [f"--net={net.value}"] if net.value else []
            words += [f"--epochs={int(epochs.value)}"] if epochs.value else []
            words += [f"--size={int(size.value)}"] if size.value else []
            words += [f"--from={weights.value}"] if weights.value else []
            where = f"/models/{quote(made)}"
            first = studio.jobs.add("new", f"make {model.value}", words, studio.workspace.root, where)
            train = [studio.program, "train", made] + ([f"--precision={precision.value}"] if precision.value else [])
            second = studio.jobs.add("train", f"train {model.value}", train, studio.workspace.root, where, after=first.id)
            studio.jobs.add("evaluate", f"evaluate {model.value}", [studio.program, "evaluate", made], studio.workspace.root, where, after=second.id)
            ui.navigate.to("/jobs")

        ui.button("Make and train", on_click=make).props("no-caps unelevated")
