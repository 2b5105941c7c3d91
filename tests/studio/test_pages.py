"""The pages, in a browser: from photographs to a model without a terminal."""
import contextlib
import json
import os
import re
import shutil
import zipfile

import numpy as np
import pytest
from PIL import Image, ImageDraw
from playwright.sync_api import expect

import browser
import caffe
from caffe.studio import storage

expect.set_options(timeout=browser.LIMIT)
COLORS = {"disc": (210, 60, 40), "square": (50, 90, 200), "triangle": (60, 160, 70)}
ALL_COLUMNS = {"width": 6000, "height": 860}  # the table makes only those that can be seen


def draw(kind, random):
    """A figure of 32 x 32 pixels on a noisy ground."""
    image = Image.fromarray(random.integers(170, 255, (32, 32, 3)).astype(np.uint8))
    x, y, size = *random.integers(4, 12, 2).tolist(), int(random.integers(12, 18))
    pen = ImageDraw.Draw(image)
    if kind == "disc":
        pen.ellipse((x, y, x + size, y + size), fill=COLORS[kind])
    elif kind == "square":
        pen.rectangle((x, y, x + size, y + size), fill=COLORS[kind])
    else:
        pen.polygon([(x, y + size), (x + size, y + size), (x + size // 2, y)], fill=COLORS[kind])
    return image


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder with an archive of photographs next to it, and two runs in it."""
    folder = tmp_path_factory.mktemp("studio")
    random = np.random.default_rng(1)
    with zipfile.ZipFile(folder / "figures.zip", "w") as archive:
        for kind in COLORS:
            for number in range(40):
                file = folder / "one.png"
                draw(kind, random).save(file)
                archive.write(file, f"{kind}/{number:02}.png")
    place = folder / "root"
    for name, rate in (("first", "0.1"), ("second", "0.01")):
        run = place / "runs" / name
        run.mkdir(parents=True)
        (run / "solver.prototxt").write_text(f"base_lr: {rate} max_iter: 100")
        (run / "train_net.prototxt").write_text('layer { name: "data" type: "Input" top: "data" } layer { name: "fc" type: "InnerProduct" bottom: "data" top: "fc" }')
        (run / "run.json").write_text(json.dumps({"sessions": [{"start": "2026-01-01T00:00:00Z", "reason": "finished", "stop_iteration": 100}]}))
        (run / "plan.json").write_text(json.dumps({"memory": {"activations": 4096}, "steps": [
            {"layers": "fc", "bytes": 100, "flops": 5, "operands": "1x2 float -> 1x3 float", "kernel": "gemm", "direction": "forward"}]}))
        with open(run / "metrics.jsonl", "w", encoding="utf-8") as lines:
            for step in range(0, 101, 10):
                lines.write(json.dumps({"event": "train", "time": 1e9 + step, "iteration": step, "loss": 1 / (1 + step * float(rate)), "learning_rate": float(rate)}) + "\n")
    return place


@pytest.fixture(scope="module")
def studio(root):
    with browser.served(root) as served:
        yield served


@pytest.fixture
def page(studio):
    with browser.browsed(studio[0]) as found:
        yield found
        assert not found.problems


def test_runs_are_compared(page):
    screen = page.page
    expect(screen.get_by_role("link", name="runs/first")).to_have_attribute("href", "/runs/runs/first")
    for box in screen.get_by_role("row").filter(has_text="runs/").get_by_role("checkbox").all():
        box.check()
    screen.get_by_role("button", name="Compare").click()
    expect(screen.get_by_text("Differences")).to_be_visible()
    row = screen.get_by_role("row").filter(has_text="base_lr")
    expect(row).to_contain_text("0.1")
    expect(row).to_contain_text("0.01")
    page.shot("compare")


def test_the_table_stays_as_its_reader_left_it(page, root):
    screen = page.page
    chosen = screen.get_by_role("row").filter(has_text="runs/first").get_by_role("checkbox").first
    chosen.check()
    expect(screen.get_by_text("1 selected")).to_be_visible()
    screen.evaluate("document.querySelector('.ag-root-wrapper').id = 'same'")
    for step in (120, 130):  # a look at the folder each
        with open(root / "runs" / "second" / "metrics.jsonl", "a", encoding="utf-8") as lines:
            lines.write(json.dumps({"event": "train", "time": 1e9 + step, "iteration": step, "loss": 0.5, "learning_rate": 0.01}) + "\n")
        expect(screen.get_by_role("gridcell").filter(has_text=re.compile(f"^{step}$"))).to_be_visible()
    expect(screen.locator("#same")).to_have_count(1)
    expect(chosen).to_be_checked()


def test_one_run(page, root):
    page.open("/runs/runs/first")
    screen = page.page
    expect(screen.get_by_text("iteration 100 of 100")).to_be_visible()
    expect(screen.locator("canvas").first).to_be_visible()
    page.shot("run")
    with open(root / "runs" / "first" / "metrics.jsonl", "a", encoding="utf-8") as lines:  # it goes on
        lines.write(json.dumps({"event": "train", "time": 1e9 + 110, "iteration": 110, "loss": 0.01, "learning_rate": 0.1}) + "\n")
    expect(screen.get_by_text("iteration 110 of 100")).to_be_visible()
    screen.get_by_role("tab", name="Plan").click()
    expect(screen.get_by_role("img", name="Graph of 2 layers")).to_be_visible()
    expect(screen.get_by_role("cell", name="gemm")).to_be_visible()
    screen.get_by_role("tab", name="Definitions").click()
    screen.get_by_text("solver.prototxt").click()
    expect(screen.get_by_text("base_lr: 0.1")).to_be_visible()


@pytest.mark.parametrize("path, text", [("/runs/../../etc", "there"), ("/runs/missing", "missing: holds no run"), ("/models/runs", "runs: holds no model"),
                                        ("/data/missing", "no such file or folder"), ("/sweeps/runs", "runs: holds no sweep"), ("/jobs/9999", "there is no job 9999"), ("/jobs/x", "'x' is not a job")])
def test_what_there_is_not(page, path, text):
    page.open(path)
    if path != "/runs/../../etc":
        expect(page.page.get_by_role("alert")).to_contain_text(text)
    page.problems.clear()


def test_every_page_is_reached_by_keys(page):
    screen = page.page
    for name in ("Data", "Models", "Sweeps", "Jobs", "Runs"):
        link = screen.get_by_role("navigation", name="Pages").get_by_role("link", name=name)
        link.focus()
        screen.keyboard.press("Enter")
        expect(screen.get_by_role("navigation", name="Pages").locator("[aria-current=page]")).to_have_text(name)


def test_from_photographs_to_a_model(page, root):
    """Sends an archive, makes and trains a model, asks it, reads its mistakes, exports it."""
    if browser.PROGRAM is None:
        pytest.skip("caffe_tool is not built")
    screen = page.page
    page.open("/data")
    screen.get_by_label("Name of the set").fill("figures")
    screen.locator("input[type=file]").set_input_files(root.parent / "figures.zip")
    expect(screen.get_by_text("folders of classes")).to_be_visible()
    expect(screen.locator(".gallery img").first).to_be_visible()
    page.shot("data")
    screen.get_by_text("What training will see").click()
    screen.get_by_role("button", name="Show", exact=True).click()
    expect(screen.get_by_text("mean of blue, green and red")).to_be_visible()
    expect(screen.locator("figcaption").filter(has_text="disc").first).to_be_visible()
    page.shot("preview")
    screen.get_by_label("Epochs").fill("6")
    screen.get_by_role("button", name="Make and train").click()
    expect(screen.get_by_text("evaluate figures_model")).to_be_visible()
    page.shot("jobs")
    expect(screen.locator(".panel").filter(has_text="evaluate figures_model").get_by_text("done", exact=True)).to_be_visible()
    page.open("/models/figures_model")
    screen.locator("input[type=file]").first.set_input_files(root / "figures" / "disc" / "00.png")
    expect(screen.get_by_role("cell", name="disc")).to_be_visible()
    page.shot("try")
    screen.get_by_label("Folder of images").fill("figures/square")
    screen.get_by_role("button", name="Ask about all").click()
    expect(screen.get_by_role("row").filter(has_text="figures/square/00.png")).to_contain_text("square")
    screen.get_by_role("tab", name="Evaluation").click()
    expect(screen.frame_locator("iframe").get_by_text("accuracy").first).to_be_visible()
    page.shot("evaluation")
    screen.get_by_role("tab", name="Inside").click()
    screen.get_by_role("button", name="Filters and weights").click()
    expect(screen.get_by_text("Parameters", exact=True)).to_be_visible()
    page.shot("filters")
    screen.get_by_role("button", name="What training sees").click()
    expect(screen.get_by_text("gives in training")).to_be_visible()
    screen.locator("input[type=file]").last.set_input_files(root / "figures" / "disc" / "00.png")
    expect(screen.get_by_text("Where the net looks for")).to_be_visible()
    page.shot("activations")
    screen.get_by_role("tab", name="Definition").click()
    screen.get_by_role("button", name="Check and save").first.click()
    expect(screen.get_by_text("Saved.")).to_be_visible()
    screen.get_by_role("button", name="Export ONNX").click()
    expect(screen.get_by_text("is queued.")).to_be_visible()
    page.open("/jobs")
    expect(screen.locator(".panel").filter(has_text="export figures_model").get_by_text("done", exact=True)).to_be_visible()
    page.open("/models/figures_model")
    screen.get_by_role("tab", name="Files").click()
    expect(screen.get_by_role("link", name="model.onnx", exact=True)).to_be_visible()
    page.shot("files")
    page.open("/runs/figures_model/runs/1")
    expect(screen.get_by_text("finished")).to_be_visible()
    page.shot("trained")
    expect(screen.get_by_text("Best: ")).to_contain_text("test/accuracy")
    screen.get_by_role("tab", name="Log").click()
    expect(screen.get_by_role("log")).to_contain_text("Optimization Done.")
    screen.get_by_role("button", name="Resume").click()
    page.open("/jobs")
    expect(screen.locator(".panel").filter(has_text="train figures_model/runs/1").get_by_text("done", exact=True)).to_be_visible()
    shutil.copy(root / "figures" / "disc" / "00.png", root / "figures" / "disc" / "new.png")
    page.open("/data/figures")
    screen.get_by_text("Versions", exact=True).click()
    expect(screen.get_by_role("link", name="figures_model")).to_be_visible()
    screen.get_by_role("button", name="Look for changes").click()
    expect(screen.get_by_text("121 files, 1 added")).to_be_visible()
    page.open("/models/figures_model")
    expect(screen.get_by_role("link", name="of figures, version 1")).to_be_visible()
    screen.get_by_role("tab", name="Fine-tune").click()
    screen.get_by_role("button", name="What is copied").click()
    expect(screen.get_by_role("row").filter(has_text="conv1").first).to_contain_text("copied")
    page.shot("copied")
    screen.get_by_role("tab", name="Definition").click()
    editor = screen.locator(".cm-content:visible").first
    editor.click()
    screen.keyboard.press("Control+End")
    for typed, offered in (('\nlayer { type: "InnerPr', "InnerProduct"), ('" inner_prod', "inner_product_param"), ("axi", "axis"), ("1 bias_te", "bias_term"),
                           ("f", "false")):
        screen.keyboard.type(typed)
        screen.locator(".cm-tooltip-autocomplete").get_by_text(offered, exact=True).click()
    expect(screen.locator(".cm-content:visible")).to_contain_text('layer { type: "InnerProduct" inner_product_param { axis: 1 bias_term: false')
    page.shot("completion")
    screen.get_by_role("button", name="Check and save").locator("visible=true").click()
    expect(screen.get_by_role("alert")).to_be_visible()  # the new layer has no bottom
    with open(root / "figures_model" / "train_val.prototxt", "a", encoding="utf-8") as file:
        file.write("# another program\n")
    screen.get_by_role("button", name="Check and save").locator("visible=true").click()
    expect(screen.get_by_role("alert")).to_contain_text("has changed on the disk since you opened it")
    page.open("/data/figures")
    screen.get_by_role("button", name="Remove").click()
    screen.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(screen.get_by_text("Send a set")).to_be_visible()
    assert (root / ".cortado" / "removed" / "1" / "figures" / "disc" / "00.png").exists() and not (root / "figures").exists()


def test_an_archive_that_is_refused(page, root):
    (root.parent / "broken.zip").write_bytes(b"no archive")
    screen = page.page
    page.open("/data")
    screen.get_by_label("Name of the set").fill("broken")
    screen.locator("input[type=file]").set_input_files(root.parent / "broken.zip")
    expect(screen.get_by_role("alert")).to_be_visible()
    expect(screen.locator(".q-uploader__file")).to_have_count(0)
    assert not (root / "broken").exists()


def test_a_sweep(page, root):
    """Queues a sweep of a model, and opens one of its trials."""
    if browser.PROGRAM is None:
        pytest.skip("caffe_tool is not built")
    pytest.importorskip("optuna")
    model = root / "line"
    model.mkdir()
    (model / "solver.prototxt").write_text('net: "train_val.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: 8 display: 0 test_interval: 4 test_iter: 1')
    (model / "deploy.prototxt").write_text('layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 4 dim: 2 } } }')
    (model / "train_val.prototxt").write_text("""
        layer { name: "x" type: "DummyData" top: "x" top: "t" dummy_data_param {
          shape { dim: 4 dim: 2 } shape { dim: 4 dim: 1 } data_filler { value: 0.5 } data_filler { value: 1 } } }
        layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y" inner_product_param { num_output: 1 } }
        layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }""")
    screen = page.page
    page.open("/sweeps")
    screen.get_by_label("Model").click()
    screen.get_by_role("option", name="line", exact=True).click()
    screen.get_by_label("Trials", exact=True).fill("3")
    screen.get_by_label("What varies, one field a line").fill("base_rl=0.001..0.1:log")
    screen.get_by_role("button", name="Sweep", exact=True).click()
    expect(screen.get_by_text("did you mean 'base_lr'")).to_be_visible()
    screen.get_by_label("What varies, one field a line").fill("base_lr=0.001..0.1:log")
    screen.get_by_role("button", name="Sweep", exact=True).click()
    expect(screen.get_by_text("is queued.")).to_be_visible()
    page.open("/jobs")
    expect(screen.locator(".panel").filter(has_text="sweep of line").get_by_text("done", exact=True)).to_be_visible()
    page.open("/sweeps/line/sweep")
    expect(screen.frame_locator("iframe").get_by_text("3 of 3 trials")).to_be_visible()
    page.shot("sweep")
    screen.get_by_role("button", name="Continue").click()
    page.open("/jobs")
    expect(screen.locator(".panel").filter(has_text="sweep line/sweep").get_by_text("done", exact=True)).to_be_visible()
    page.open("/sweeps/line/sweep")
    screen.get_by_role("link", name="trial 0").click()
    expect(screen.get_by_text("iteration 8 of 8")).to_be_visible()


def write_run(place, *lines, **session):
    place.mkdir(parents=True)
    (place / "run.json").write_text(json.dumps({"sessions": [{"start": "2026-01-01T00:00:00Z", "reason": "finished", **session}]}))
    with open(place / "metrics.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"event": "train", "time": 1e9, "iteration": 10, "loss": 0.5, **keys}) + "\n" for keys in lines or ({},))


@pytest.fixture
def model(root):
    """A model that has weights, as far as the pages look."""
    folder = root / "small"
    (folder / "snapshots").mkdir(parents=True)
    (folder / "snapshots" / "a.caffemodel").touch()
    (folder / "snapshots" / "gone.caffemodel").symlink_to(root / "missing")
    (folder / "solver.prototxt").write_text('net: "train_val.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: 8')
    for file in ("deploy.prototxt", "train_val.prototxt"):
        (folder / file).write_text('layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 4 dim: 2 } } }\n')
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def still(studio, monkeypatch):
    """The Studio, which starts no job."""
    monkeypatch.setattr(studio[1].jobs, "start_next", lambda: [])
    return studio[1]


@pytest.fixture
def full_disk(monkeypatch):
    """Nothing that the studio keeps can be written while this is entered."""
    def refuse(file, _content):
        raise caffe.IoError(f"{file}: cannot be written: No space left on device")

    @contextlib.contextmanager
    def full():
        with monkeypatch.context() as patched:
            patched.setattr(storage, "write_whole", refuse)
            yield
    return full


def test_a_table_that_was_opened_before_the_runs(page, root):
    runs = [folder for folder in root.iterdir() if list(folder.rglob("metrics.jsonl"))]
    aside = root.parent / "aside"
    aside.mkdir()
    for folder in runs:
        folder.rename(aside / folder.name)
    screen = page.page
    screen.set_viewport_size(ALL_COLUMNS)
    page.open("/")
    expect(screen.get_by_text("No run yet")).to_be_visible()
    write_run(root / "late", {"rare_figure": 0.25})
    for folder in runs:
        (aside / folder.name).rename(folder)
    expect(screen.get_by_text("No run yet")).to_be_hidden()
    expect(screen.get_by_role("link", name="late", exact=True)).to_be_visible()
    expect(screen.get_by_role("columnheader", name="train rare_figure")).to_be_visible()
    expect(screen.get_by_role("gridcell", name="0.25000")).to_be_visible()
    screen.get_by_role("row").filter(has_text="late").get_by_role("checkbox").check()
    write_run(root / "second")
    expect(screen.get_by_role("link", name="second", exact=True)).to_be_visible()
    expect(screen.get_by_text("1 selected")).to_be_visible()
    for name in ("late", "second"):
        shutil.rmtree(root / name)


def test_runs_with_damage_and_odd_names(page, root):
    odd = root / "odd"
    for number, keys in enumerate(({"time": 1e20}, {"time": "NaN"}, {"iteration": 1e300})):
        write_run(odd / f"line{number}", {}, keys)
    for number, stop in enumerate(("abc", -5, 10 ** 30)):
        write_run(odd / f"stop{number}", stop_iteration=stop, solver_type=["Adam"], command="caffe train 'cut", folder=str(root))
    write_run(odd / os.fsdecode(b"r\xe9seau"))
    (root / os.fsdecode(b"caf\xe9")).mkdir()
    write_run(odd / "two\nlines")
    write_run(odd / "two & #?%41")
    (odd / "stop0" / "plan.json").write_text('{"steps": [1], "memory": [1]}')
    screen = page.page
    page.open("/")
    for name in ("odd/line2", "odd/stop2"):
        screen.get_by_placeholder("Search").fill(name)
        expect(screen.get_by_role("link", name=name)).to_be_visible()
    page.open("/data")
    expect(screen.get_by_role("link", name="odd")).to_be_visible()
    page.open("/runs/odd/two%20%26%20%23%3F%2541")
    expect(screen.get_by_text("iteration 10")).to_be_visible()
    page.open("/")
    screen.get_by_placeholder("Search").fill("lines")
    screen.get_by_role("link", name="odd/two lines").click()
    expect(screen.get_by_text("iteration 10")).to_be_visible()
    page.open("/runs/odd/stop0")
    screen.get_by_role("tab", name="Plan").click()
    expect(screen.get_by_text("The run has no plan.").or_(screen.get_by_role("columnheader", name="GFLOP"))).to_be_visible()
    screen.get_by_role("button", name="Resume").click()
    expect(screen.get_by_text("does not say by which `caffe train`")).to_be_visible()
    for folder in (os.fsencode(odd / os.fsdecode(b"r\xe9seau")), os.fsencode(root / os.fsdecode(b"caf\xe9"))):
        shutil.rmtree(folder)
    shutil.rmtree(odd)


def test_a_run_that_is_removed_while_it_is_shown(page, root):
    write_run(root / "short")
    page.open("/runs/short")
    expect(page.page.get_by_text("iteration 10")).to_be_visible()
    shutil.rmtree(root / "short")
    expect(page.page.get_by_role("alert")).to_contain_text("short: holds no run\nThis page is no longer updated. Load it again.")


def test_a_run_with_thousands_of_figures(page, root):
    write_run(root / "wide", {"outputs": {f"prob[{index}]": 0.5 for index in range(5000)}})
    screen = page.page
    page.open("/runs/wide")
    expect(screen.get_by_text("60 of 5,001 figures are shown")).to_be_visible()
    expect(screen.locator(".chart")).to_have_count(60)
    screen.get_by_label("Search figures").fill("PROB[4999")
    expect(screen.locator(".chart")).to_have_count(1)
    expect(screen.get_by_text("figures are shown")).to_be_hidden()
    page.open("/")
    screen.get_by_placeholder("Search").fill("wide")
    expect(screen.get_by_role("link", name="wide")).to_be_visible()
    shutil.rmtree(root / "wide")


@pytest.mark.parametrize("path, text", [("/data/.cortado", ".cortado: is hidden"), ("/runs/a%00b", "is not a name for this page"), ("/models/a%00b", "is not a name for this page"),
                                        ("/data/a%00b", "is not a name for this page")])
def test_what_is_not_shown(page, path, text):
    page.open(path)
    expect(page.page.get_by_role("alert")).to_contain_text(text)
    expect(page.page.get_by_role("button", name="Remove")).to_have_count(0)


def test_a_defect_is_one_sentence(page, studio, monkeypatch, caplog):
    def defect():
        raise RuntimeError("no way")

    monkeypatch.setattr(studio[1].workspace, "models", defect)
    for path in ("/models", "/sweeps"):  # a page that takes time, and one that does not
        page.open(path)
        expect(page.page.get_by_role("alert")).to_have_text(re.compile("The studio has a defect .RuntimeError: no way.. Its log says more"))
    assert "Traceback" in caplog.text


def test_a_full_disk(page, root, model, studio, full_disk, monkeypatch):
    """Nothing that is entered is lost without a word, and the queue goes on afterwards."""
    screen = page.page
    screen.set_viewport_size(ALL_COLUMNS)
    monkeypatch.setattr(studio[1].jobs, "slots", 0)
    studio[1].jobs.add("x", "queued before", ["true"], str(root))
    with full_disk():
        studio[1].jobs.slots = 1
        write_run(root / "noted")
        page.open("/")
        screen.locator('[row-id="noted"] [col-id="note"]').dblclick()
        screen.keyboard.type("precious")
        screen.keyboard.press("Enter")
        expect(screen.get_by_role("alert")).to_contain_text("notes.json: cannot be written: No space left on device")
        page.open("/models/small")
        screen.get_by_role("button", name="Train", exact=True).click()
        expect(screen.get_by_role("alert")).to_contain_text("job.json: cannot be written: No space left on device")
        page.open("/jobs")
        expect(screen.get_by_role("alert")).to_contain_text(re.compile("The queue waits, because no job can be started: .*job.json: cannot be written: No space left on device"))
    expect(screen.locator(".panel").filter(has_text="queued before").get_by_text("done", exact=True)).to_be_visible()
    expect(screen.get_by_role("alert")).to_have_count(0)
    assert not any(job.title == "train small" for job, _ in studio[1].jobs.all())
    shutil.rmtree(root / "noted")


def test_a_definition_that_does_not_parse_can_be_mended(page, model):
    if browser.PROGRAM is None:
        pytest.skip("caffe_tool is not built")
    file = model / "train_val.prototxt"
    good = file.read_bytes().replace(b"\n", b"\r\n")
    file.write_bytes(good + b"layer {")
    (model / "deploy.prototxt").write_bytes(b"# r\xe9seau\n")
    screen = page.page
    page.open("/models")
    expect(screen.get_by_role("link", name="small", exact=True)).to_be_visible()
    page.open("/models/small")
    expect(screen.get_by_role("alert")).to_contain_text("train_val.prototxt:2:")
    screen.get_by_role("tab", name="Definition").click()
    screen.get_by_text("deploy.prototxt", exact=True).click()
    expect(screen.get_by_text("deploy.prototxt:1: the byte 0xe9 is not UTF-8")).to_be_visible()
    screen.locator(".cm-content:visible").click()
    screen.keyboard.press("Control+End")
    screen.keyboard.press("Shift+Home")
    screen.keyboard.press("Delete")
    screen.get_by_role("button", name="Check and save").locator("visible=true").click()
    expect(screen.get_by_text("Saved.")).to_be_visible()
    assert file.read_bytes() == good and [entry.name for entry in model.iterdir() if entry.name.startswith(".")] == []
    file.unlink()
    screen.get_by_role("button", name="Check and save").locator("visible=true").click()
    expect(screen.get_by_role("alert").filter(has_text="train_val.prototxt: No such file or directory")).to_be_visible()


def test_sweeps_are_told_apart(page, root, still):
    """A sweep whose path ends with that of another, and the job of the form, whose words do not name the sweep's folder."""
    for name in ("cat", "bobcat"):
        (root / name / "sweep").mkdir(parents=True)
        for file in ("sweep.json", "journal.log"):
            (root / name / "sweep" / file).touch()
    first = still.jobs.add("sweep", "sweep of bobcat", ["caffe", "sweep", "bobcat", "base_lr=1,2"], str(root), "/sweeps/bobcat/sweep")
    screen = page.page
    page.open("/sweeps/bobcat/sweep")
    screen.get_by_role("button", name="Continue").click()
    expect(screen.get_by_text(f"Job {first.id} works on bobcat/sweep already.")).to_be_visible()
    page.open("/sweeps/cat/sweep")
    screen.get_by_role("button", name="Continue").click()
    expect(screen.get_by_text("is queued.")).to_be_visible()
    assert [job.result for job, state in still.jobs.all() if state == "queued"] == ["/sweeps/bobcat/sweep", "/sweeps/cat/sweep"]
    for job, state in still.jobs.all():
        if state == "queued":
            still.jobs.stop(job.id, "cancel")
    for name in ("cat", "bobcat"):
        shutil.rmtree(root / name)
