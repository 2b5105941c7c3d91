"""Models: what they are, what they answer, what is in them."""
import os
import pathlib
import tempfile
from urllib.parse import quote

from nicegui import run, ui

from ... import Error, InvalidArgument
from .. import charts, commands, drawing
from ..jobs import done_since
from ..resuming import finished_run
from ..workspace import files_like
from . import page
from .editor import definitions
from .errors import failure, shown_here
from .looking import fill, gallery
from .removing import remove_button

_MOST_UPLOADED = 64 << 20  # bytes
_QUESTIONS = {"classification": "classify", "detection": "detect", "segmentation": "segment"}


@page("/models", "Models", "hub", 3)
async def show(studio):
    ui.label("Models").classes("title")
    names = await run.io_bound(studio.workspace.models)
    summaries = await run.io_bound(studio.workspace.summaries)
    if not names:
        ui.label("No model yet. Open a set under Data to make one.").classes("soft")
    for name in names:
        with ui.row().classes("items-center panel w-full"):
            ui.icon("hub").props("aria-hidden=true")
            ui.link(name, f"/models/{quote(name)}")
            ui.label("trained" if _weights(studio, name) else "no weights yet").classes("soft")
            ui.label(newest_figure(summaries, studio.workspace.inside(name))).classes("soft")


def newest_figure(summaries, folder):
    """The main figure of the newest test in a model's runs, such as "accuracy 0.93", or "". summaries: of all runs, the newest first."""
    for summary in summaries:
        tests = [name for name in summary.figures if name.startswith("test/")]
        if tests and os.path.dirname(summary.folder) == os.path.join(folder, "runs"):
            name = min(tests, key=lambda name: (name not in ("test/accuracy", "test/detection_eval"), "loss" in name, name))
            return f"{name[len('test/'):]} {summary.figures[name]:.3g}"
    return ""


def _weights(studio, name):
    folder = studio.workspace.inside(name)
    files = [pathlib.Path(file) for file in files_like(folder, "snapshots/*.caffemodel")]
    return sorted(files, key=lambda file: (file.name.endswith("_best.caffemodel"), file.stat().st_mtime))


def _task(folder):
    """The task of a model, by the data that it is trained with, or else by its last layer. Raises InvalidArgument, OSError."""
    file = folder / "train_val.prototxt"
    net = drawing.read_net(file if file.is_file() else folder / "deploy.prototxt")
    types = {layer.type for layer in net.layer}
    if "AnnotatedData" in types or any(kind.endswith("DetectionOutput") for kind in types):
        return "detection"
    return "segmentation" if "DenseImageData" in types else "classification"


@page("/models/{name:path}")
def show_one(studio, name):
    folder = pathlib.Path(studio.workspace.inside(name))
    if not (folder / "deploy.prototxt").exists():
        raise InvalidArgument(f"{name}: holds no model")
    with ui.row().classes("items-center w-full"):
        ui.link("Models", "/models").classes("soft")
        ui.label(name).classes("title")
        made = studio.versions.of_model(name)
        if made:
            ui.link(f"of {made[0]}, version {made[1]}", f"/data/{quote(made[0])}").classes("soft")
        ui.space()
        _actions(studio, name, folder)
    titles = {"Try": lambda: _try(studio, folder), "Inside": lambda: _inside(folder), "Definition": lambda: definitions(studio, folder),
              "Evaluation": lambda: _evaluation(studio, name, folder), "Fine-tune": lambda: _start(studio, folder), "Runs": lambda: _runs(studio, folder), "Files": lambda: _files(studio, name, folder)}
    with ui.tabs().props("dense no-caps align=left") as tabs:
        for title in titles:
            ui.tab(title)
    with ui.tab_panels(tabs, value="Try", animated=False).classes("w-full"):
        for title, fill in titles.items():
            with ui.tab_panel(title), shown_here():
                fill()


def _actions(studio, name, folder):
    def queue(kind, *words):
        job = studio.jobs.add(kind, f"{kind} {name}", [studio.program, kind, name, *words], studio.workspace.root, f"/models/{quote(name)}")
        ui.notify(f"Job {job.id} is queued.")

    async def train():
        title = f"train {name}"
        found = studio.jobs.all()
        since = done_since(found)
        paused = [job.id for job, state in found if job.title == title and state == "paused" and job.id not in since]
        if paused:
            ui.notify(f"Job {paused[-1]} trains this model and is paused. Press Go on under Jobs.", type="warning")
            return
        done = await run.io_bound(finished_run, folder)
        if done is None:
            queue("train")
        else:
            ui.notify(f"Nothing is left to train. To train further, open run {done.name} under Runs and press Resume.", type="warning")

    def export_8_bits():
        found = _weights(studio, name)
        if not found:
            ui.notify("Train the model first.", type="warning")
            return
        where, ranges = f"/models/{quote(name)}", "calibration.json"
        first = studio.jobs.add("calibrate", f"calibrate {name}", [studio.program, "calibrate", "train_val.prototxt", f"--weights={found[-1]}",
                                                                   "--iterations=10", f"--output={ranges}"], str(folder), where)
        studio.jobs.add("export", f"export {name} in 8 bits", [
            studio.program, "export", "--onnx", "deploy.prototxt", f"--weights={found[-1]}", "--output=model_int8.onnx", f"--int8={ranges}"],
            str(folder), where, after=first.id)
        ui.notify(f"Jobs {first.id} and the next are queued.")

    ui.button("Train", on_click=train).props("dense flat no-caps")
    ui.button("Evaluate", on_click=lambda: queue("evaluate")).props("dense flat no-caps")
    ui.button("Export ONNX", on_click=lambda: queue("export", "--onnx", f"--output={name}/model.onnx")).props("dense flat no-caps")
    ui.button("Export 8 bits", on_click=export_8_bits).props("dense flat no-caps")
    remove_button(studio, name, "/models")


def _try(studio, folder):
    if not _weights(studio, studio.workspace.relative(folder)):
        ui.label("Train the model first.").classes("soft")
        return
    command = _QUESTIONS[_task(folder)]
    ui.label("Send an image to see the answer.").classes("soft")
    result = ui.column().classes("w-full")

    async def receive(event):
        result.clear()
        with result, shown_here(), tempfile.TemporaryDirectory() as place:
            file = pathlib.Path(place) / ("image" + pathlib.PurePath(event.file.name).suffix.lower()[:8])
            await event.file.save(file)
            try:
                found = await commands.json_answer(studio.program, command, folder, file, "--json",
                                                   *(["--draw", place + "/drawn"] if command != "classify" else []))
                content = await run.io_bound(_picture, pathlib.Path(place), file)
            except Error as error:
                raise type(error)(str(error).replace(place + "/", "")) from None
            with ui.row().classes("items-start"):
                ui.html(f'<img src="{content}" alt="The image" style="max-width: 24rem; max-height: 24rem; min-width: 8rem">', sanitize=False)
                _answers(found["images"][0])

    ui.upload(label="Image", auto_upload=True, max_file_size=_MOST_UPLOADED, on_upload=receive).props('accept="image/*" flat bordered')
    _ask_many(studio, folder, command)


def _ask_many(studio, folder, command):
    """Answers about all images of a folder, as a table."""
    with ui.row().classes("items-center"):
        place = ui.input("Folder of images", placeholder="in the workspace").props("dense outlined")
        ask = ui.button("Ask about all").props("dense outline no-caps")
    result = ui.column().classes("w-full")

    async def answer():
        result.clear()
        ask.disable()
        with result, shown_here():
            try:
                images = studio.workspace.inside(place.value or "")
                found = await commands.json_answer(studio.program, command, folder, images, "--json", "--batch=16", limit=3600)
            finally:
                ask.enable()
            rows = [{"id": index, "image": studio.workspace.relative(one["image"]), **_best(one)} for index, one in enumerate(found["images"])]
            ui.table(columns=[{"name": key, "label": key, "field": key, "align": "left", "sortable": True} for key in ("image", "answer", "score")],
                     rows=rows, row_key="id", pagination=25).props("dense flat").classes("w-full")

    ask.on_click(answer)


def _best(one):
    """The first class, the largest share, or the number of detections, for a table."""
    if "detections" in one:
        return {"answer": ", ".join(found["name"] for found in one["detections"]) or "nothing",
                "score": max((round(found["score"], 4) for found in one["detections"]), default=None)}
    first = max(one["classes"], key=lambda found: found.get("score", found.get("share", 0)))
    return {"answer": first["name"], "score": round(first.get("score", first.get("share", 0)), 4)}


def _picture(place, file):
    """The drawn copy, or the image, as a data URI."""
    import base64

    from ..pictures import thumbnail

    drawn = sorted((place / "drawn").glob("*")) if (place / "drawn").exists() else []
    return "data:image/jpeg;base64," + base64.b64encode(thumbnail(drawn[0] if drawn else file, 640)).decode()


def _answers(found):
    rows = found.get("classes") or found.get("detections") or []
    if not rows:
        ui.label("Nothing was found.")
        return
    key = "share" if "share" in rows[0] else "score"
    ui.table(columns=[{"name": "name", "label": "class", "field": "name", "align": "left"},
                      {"name": key, "label": key, "field": key, "align": "right", ":format": "value => value.toFixed(4)"}],
             rows=[{"id": index, **row} for index, row in enumerate(rows)], row_key="id", pagination=10).props("dense flat")


def _inside(folder):
    place = ui.column().classes("w-full")

    async def show_filters():
        await fill(place, _show_filters, "filters", folder)

    async def show_samples():
        await fill(place, _show_samples, "samples", folder)

    async def receive(event):
        with tempfile.NamedTemporaryFile() as file:
            await event.file.save(pathlib.Path(file.name))
            await fill(place, _show_activations, "activations", folder, file.name)

    with ui.row().classes("items-center"):
        ui.button("Filters and weights", on_click=show_filters).props("dense outline no-caps")
        ui.button("What training sees", on_click=show_samples).props("dense outline no-caps")
        ui.upload(label="Image, for activations", auto_upload=True, max_file_size=_MOST_UPLOADED, on_upload=receive).props('accept="image/*" flat bordered')


def _histogram(one):
    width = (one["high"] - one["low"]) / len(one["counts"])
    bars = [[one["low"] + (index + 0.5) * width, count] for index, count in enumerate(one["counts"])]
    ui.echart(charts.themed({"animation": False, "title": {"text": f"{one['name']}  {'x'.join(map(str, one['shape']))}", "textStyle": {"fontSize": 12}, "left": 8, "top": 4},
               "grid": {"left": 50, "right": 12, "top": 40, "bottom": 24}, "xAxis": {"type": "value", "min": one["low"], "max": one["high"], "axisLabel": {"showMinLabel": False, "showMaxLabel": False}},
               "yAxis": {"type": "value"},
               "series": [{"type": "bar", "barWidth": "98%", "data": bars}]})).style("width: 100%; height: 11rem")
    if one["not_finite"]:
        failure(f"{one['name']}: {one['not_finite']} values are not finite")


def _start(studio, folder):
    """Shows what the net takes from given weights, and starts a training from them."""
    files = studio.workspace.weights()
    if not files:
        ui.label("There are no weights in the folder of the studio yet.").classes("soft")
        return
    place = ui.column().classes("w-full")

    async def look():
        await fill(place, _show_copied, "copied", folder, studio.workspace.inside(weights.value))

    def train():
        name = studio.workspace.relative(folder)
        if (folder / "snapshots").exists():
            ui.notify(f"{name} has been trained already. To start from other weights, make a new model under Data.", type="warning")
            return
        job = studio.jobs.add("train", f"train {name} from {weights.value}", [studio.program, "train", name,
                              f"--weights={studio.workspace.inside(weights.value)}"], studio.workspace.root, f"/models/{quote(name)}",
                              resume=["--auto_resume"])
        ui.notify(f"Job {job.id} is queued.")

    with ui.row().classes("items-end"):
        weights = ui.select(files, value=files[0], label="Weights").props("dense outlined").style("min-width: 20rem")
        ui.button("What is copied", on_click=look).props("dense outline no-caps")
        ui.button("Train from them", on_click=train).props("dense outline no-caps")
    place.move(target_index=-1)


def _show_copied(found):
    meanings = {"copied": "copied", "kept": "starts anew: the weights have no layer of this name", "ignored": "left out: the net has no layer of this name"}
    counts = {outcome: sum(row["values"] for row in found["layers"] if row["outcome"] == outcome) for outcome in meanings}
    ui.label(f"{counts['copied']:,} values are copied, {counts['kept']:,} start anew.").classes("soft")
    ui.table(columns=[{"name": key, "label": label, "field": key, "align": align, "sortable": True} for key, label, align in (
        ("layer", "layer", "left"), ("outcome", "what happens", "left"), ("blobs", "blobs", "right"), ("values", "values", "right"))],
             rows=[{"id": index, **row, "outcome": meanings[row["outcome"]]} for index, row in enumerate(found["layers"])], row_key="id",
             pagination=25).props("dense flat").classes("w-full")


def _show_filters(found):
    if found["filters"]:
        ui.label(f"Filters of {found['layer']}").classes("title")
        gallery(found["filters"])
    ui.label("Parameters").classes("title")
    with ui.element("div").classes("charts"):
        for one in found["parameters"]:
            _histogram(one)


def _show_samples(found):
    ui.label(f"What {found['layer']} gives in training").classes("title")
    gallery(found["pictures"], found["labels"])


def _show_activations(found):
    if found["gradcam"]:
        ui.label(f"Where the net looks for {found['gradcam']['label']} (Grad-CAM of {found['gradcam']['blob']})").classes("title")
        ui.html(f'<img src="{found["gradcam"]["picture"]}" alt="The image, dark where the net does not look" '
                'style="min-width: 12rem; image-rendering: pixelated">', sanitize=False)
    for one in found["blobs"]:
        with ui.expansion(f"{one['name']}  {'x'.join(map(str, one['shape']))}").classes("w-full"):
            gallery(one["pictures"])
            _histogram(one)


def _evaluation(studio, name, folder):
    file = folder / "evaluation.html"
    if not file.is_file():
        ui.label("Evaluate the model to see its mistakes.").classes("soft")
        return
    address = f"/file?path={quote(studio.workspace.relative(file))}"
    ui.link("open alone", address, new_tab=True).classes("soft")
    ui.html(f'<iframe src="{address}" title="Evaluation of {quote(name)}" sandbox="allow-scripts" style="width: 100%; height: 46rem; border: 0"></iframe>',
            sanitize=False).classes("w-full")


def _runs(studio, folder):
    found = [summary for summary in studio.workspace.summaries() if summary.folder.startswith(str(folder) + os.sep)]
    if not found:
        ui.label("It has not been trained yet.").classes("soft")
    for summary in found:
        relative = studio.workspace.relative(summary.folder)
        with ui.row().classes("items-center"):
            ui.link(relative, f"/runs/{quote(relative)}")
            ui.badge(summary.state)
            ui.label(f"iteration {summary.iteration}").classes("soft")


def _files(studio, name, folder):
    """Everything that users carry away."""
    readme = folder / "README.md"
    others = [pathlib.Path(file) for pattern in ("*.onnx", "*.prototxt", "evaluation.json", readme.name) for file in files_like(str(folder), pattern)]
    for file in [*reversed(_weights(studio, name)), *others]:
        with ui.row().classes("items-center"):
            ui.link(file.name, f"/file?path={quote(studio.workspace.relative(file))}&download=1")
            ui.label(f"{file.stat().st_size:,} bytes").classes("soft")
    if readme.is_file():
        ui.markdown(readme.read_text(encoding="utf-8", errors="replace"), sanitize=True).classes("panel")
