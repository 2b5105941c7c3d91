"""The pages, in a browser: from photographs to a model without a terminal."""
import json
import os
import re
import shutil
import subprocess
import threading

import pytest
from playwright.sync_api import expect

import browser
from samples import write_run

expect.set_options(timeout=browser.LIMIT)


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


def test_only_a_run_that_trains_here_is_stopped(page, root):
    run, screen = root / "stopped", page.page
    alive = {"start": "2099-01-01T00:00:00Z", "host": os.uname().nodename, "process": os.getpid()}
    write_run(run, **alive, run_dir=str(run))
    page.open("/runs/stopped")
    buttons = [screen.get_by_role("button", name=name) for name in ("Snapshot", "Stop")]
    for session, expected in (({}, "to_be_disabled"), ({"reason": ""}, "to_be_enabled"), ({"reason": "", "host": "elsewhere"}, "to_be_disabled"),
                              ({"reason": ""}, "to_be_enabled"), ({"reason": "stopped"}, "to_be_disabled")):
        (run / "run.json").write_text(json.dumps({"sessions": [{"reason": "finished", **alive, **session}]}))
        for button in buttons:
            getattr(expect(button), expected)()
    shutil.rmtree(run)


@pytest.mark.parametrize("path, text", [("/runs/../../etc", "there"), ("/runs/missing", "missing: holds no run"), ("/models/runs", "runs: holds no model"),
                                        ("/data/missing", "no such file or folder"), ("/sweeps/runs", "runs: holds no sweep"), ("/jobs/9999", "there is no job 9999"), ("/jobs/x", "'x' is not a job")])
def test_what_there_is_not(page, path, text):
    page.open(path)
    if path != "/runs/../../etc":
        expect(page.page.get_by_role("alert")).to_contain_text(text)
    page.problems.clear()


def test_the_list_of_models_shows_their_newest_test(page, model):
    write_run(model / "runs" / "1", {"event": "test", "outputs": {"accuracy": 0.93}})
    page.open("/models")
    expect(page.page.locator(".panel").filter(has_text="small")).to_contain_text("trainedaccuracy 0.93")


def test_every_page_is_reached_by_keys(page):
    screen = page.page
    for name in ("Data", "Models", "Sweeps", "Jobs", "Runs"):
        link = screen.get_by_role("navigation", name="Pages").get_by_role("link", name=name)
        link.focus()
        screen.keyboard.press("Enter")
        expect(screen.get_by_role("navigation", name="Pages").locator("[aria-current=page]")).to_have_text(name)


def test_the_table_is_used_by_keys(page):
    """Enter opens the run of any cell, but edits tags and notes."""
    screen = page.page
    cell = screen.locator('[row-id="runs/second"] [col-id="state"]')
    cell.click()
    screen.keyboard.press("Enter")
    expect(screen.get_by_role("tab", name="Curves")).to_be_visible()
    assert screen.url == page.address + "/runs/runs/second"
    page.open("/")
    screen.set_viewport_size(browser.ALL_COLUMNS)
    note = screen.locator('[row-id="runs/second"] [col-id="note"]')
    note.click()
    screen.keyboard.press("Enter")
    screen.keyboard.type("by keys")
    screen.keyboard.press("Enter")
    expect(note).to_have_text("by keys")
    assert screen.url == page.address + "/"


def test_tab_leaves_the_table(page):
    screen = page.page
    has_focus = "document.activeElement.closest('.ag-root-wrapper') !== null"
    for key in ("Tab", "Shift+Tab"):
        screen.locator('[row-id="runs/second"] [col-id="state"]').click()
        assert screen.evaluate(has_focus)
        for _ in range(5):
            screen.keyboard.press(key)
        assert not screen.evaluate(has_focus)
    screen.get_by_placeholder("Search").focus()
    screen.keyboard.press("Tab")
    assert screen.evaluate(has_focus)
    screen.keyboard.press("ArrowDown")
    screen.keyboard.press("ArrowRight")
    expect(screen.locator('[row-index="0"] [col-id="run"]')).to_be_focused()
    screen.set_viewport_size(browser.ALL_COLUMNS)
    note = screen.locator('[row-id="runs/second"] [col-id="note"]')
    note.dblclick()
    screen.keyboard.type("by tab")
    screen.keyboard.press("Tab")
    expect(note).to_have_text("by tab")
    assert not screen.evaluate(has_focus)
    page.open("/")
    expect(note).to_have_text("by tab")


def test_the_table_is_as_high_as_the_window_allows(page):
    table = page.page.locator(".ag-root-wrapper")
    for height, least in ((400, 384), (1500, 900)):
        page.page.set_viewport_size({"width": 1280, "height": height})
        assert table.bounding_box()["height"] == least


def test_the_focus_stays_near_a_button_that_is_replaced(page, root, still):
    jobs = [still.jobs.add("train", f"job {name}", ["true"], str(root)) for name in ("one", "two", "three")]
    screen = page.page
    page.open("/jobs")
    line = screen.locator(".panel").filter(has_text="job two")
    for button, after in (("Pause", "Go on"), ("Go on", "Pause")):
        line.get_by_role("button", name=button).focus()
        screen.keyboard.press("Enter")
        expect(line.get_by_role("button", name=after)).to_be_focused()
    with screen.expect_navigation():
        screen.keyboard.press("Shift+Tab")  # back to the link of the line
        screen.keyboard.press("Enter")
    assert screen.url == f"{page.address}/jobs/{jobs[1].id}"
    for job in jobs:
        still.jobs.stop(job.id, "cancel")


def test_the_focus_comes_back_to_a_button_that_was_disabled(page, root, studio, monkeypatch):
    for kind in ("cat", "dog"):
        (root / "few" / kind).mkdir(parents=True)
        shutil.copy(root.parent / "one.png", root / "few" / kind / "one.png")
    seen, record = threading.Event(), studio[1].versions.record
    monkeypatch.setattr(studio[1].versions, "record", lambda *words: seen.wait() and record(*words))
    screen = page.page
    page.open("/data/few")
    screen.get_by_text("Versions", exact=True).click()
    button = screen.get_by_role("button", name="Look for changes")
    button.focus()
    screen.keyboard.press("Enter")
    expect(button).to_be_disabled()
    seen.set()
    expect(screen.get_by_text("The set is at version 1.")).to_be_visible()
    expect(button).to_be_focused()
    shutil.rmtree(root / "few")


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
    expect(screen.get_by_text(re.compile("mean of blue, green and red of a sample of [0-9]+ of 120 images: "))).to_be_visible()
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
    expect(screen.get_by_role("dialog")).to_contain_text("Raise max_epoch to continue from its newest snapshot; it is 6 now.")
    screen.get_by_label("max_epoch").fill("7")
    screen.get_by_role("button", name="Train further").click()
    page.open("/jobs")
    expect(screen.locator(".panel").filter(has_text="train figures_model/runs/1").get_by_text("done", exact=True)).to_be_visible()
    page.open("/runs/figures_model/runs/1")
    screen.get_by_role("tab", name="Sessions").click()
    expect(screen.get_by_text("session 2:")).to_be_visible()
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


@pytest.fixture
def line(root):
    """A model that trains in a moment."""
    model = root / "line"
    model.mkdir()
    (model / "solver.prototxt").write_text('net: "train_val.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: 8 display: 4 test_interval: 4 test_iter: 1\n'
                                           'snapshot_prefix: "snapshots/line"')
    (model / "deploy.prototxt").write_text('layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 4 dim: 2 } } }')
    (model / "train_val.prototxt").write_text("""
        layer { name: "x" type: "DummyData" top: "x" top: "t" dummy_data_param {
          shape { dim: 4 dim: 2 } shape { dim: 4 dim: 1 } data_filler { value: 0.5 } data_filler { value: 1 } } }
        layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y" inner_product_param { num_output: 1 } }
        layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }""")
    yield model
    shutil.rmtree(model)


def contents(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_copied_runs_leave_the_original_alone(page, root, line):
    """A copied run names the original. A copied model trains by itself; its own run continues for longer."""
    if browser.PROGRAM is None:
        pytest.skip("caffe_tool is not built")
    shutil.copytree(line, root / "twin")
    for name in ("line", "twin"):
        subprocess.run([browser.PROGRAM, "train", name], cwd=root, check=True, capture_output=True)
    shutil.copytree(line / "runs" / "1", root / "alone")
    shutil.copytree(line, root / "copy")
    before = contents(line)
    screen = page.page
    record = json.loads((root / "alone" / "run.json").read_text())
    for button in ("Resume", "Stop"):  # the latter of a copy that seems to train, as if it were of a training that goes on
        if button == "Stop":
            session = {**record["sessions"][-1], "start": "2099-01-01T00:00:00Z", "process": os.getpid(), "reason": ""}
            (root / "alone" / "run.json").write_text(json.dumps({"sessions": [session]}))
        page.open("/runs/alone")
        screen.get_by_role("button", name=button).click()
        expect(screen.get_by_role("dialog")).to_contain_text("is a copy, or was moved")
        expect(screen.get_by_role("link", name="Open line/runs/1")).to_have_attribute("href", "/runs/line/runs/1")
    page.open("/runs/copy/runs/1")
    screen.get_by_role("button", name="Resume").click()
    expect(screen.get_by_role("dialog")).to_contain_text("use Train on the page of copy")
    page.open("/runs/twin/runs/1")
    screen.get_by_role("button", name="Resume").click()
    expect(screen.get_by_label("max_iter")).to_have_value("16")
    expect(screen.get_by_label("max_iter")).to_be_focused()
    screen.keyboard.press("Enter")
    expect(screen.get_by_text("iteration 16 of 16")).to_be_visible()
    assert contents(line) == before and (root / "twin" / "snapshots" / "line_iter_16.solverstate").exists()
    for name in ("alone", "copy", "twin"):
        shutil.rmtree(root / name)


def test_a_sweep(page, line):
    """Queues a sweep of a model, and opens one of its trials."""
    if browser.PROGRAM is None:
        pytest.skip("caffe_tool is not built")
    pytest.importorskip("optuna")
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
