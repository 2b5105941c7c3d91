"""The pages, in a browser, where something is damaged, missing, odd or full."""
import json
import os
import re
import shutil

import pytest
from playwright.sync_api import expect

import browser
from samples import write_run

expect.set_options(timeout=browser.LIMIT)


def test_a_table_that_was_opened_before_the_runs(page, root):
    runs = [folder for folder in root.iterdir() if list(folder.rglob("metrics.jsonl"))]
    aside = root.parent / "aside"
    aside.mkdir()
    for folder in runs:
        folder.rename(aside / folder.name)
    screen = page.page
    screen.set_viewport_size(browser.ALL_COLUMNS)
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
    screen.set_viewport_size(browser.ALL_COLUMNS)
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
    page.open("/jobs")
    line = screen.locator(".panel").filter(has_text="sweep of bobcat")
    line.get_by_role("button", name="Pause").click()
    expect(line.get_by_role("button", name="Go on")).to_be_visible()
    page.open("/sweeps/bobcat/sweep")
    screen.get_by_role("button", name="Continue").click()
    expect(screen.get_by_text(f"Job {first.id} works on bobcat/sweep and is paused. Press Go on under Jobs.")).to_be_visible()
    still.jobs.go_on(first.id)
    page.open("/sweeps/cat/sweep")
    screen.get_by_role("button", name="Continue").click()
    expect(screen.get_by_text("is queued.")).to_be_visible()
    assert [job.result for job, state in still.jobs.all() if state == "queued"] == ["/sweeps/bobcat/sweep", "/sweeps/cat/sweep"]
    for job, state in still.jobs.all():
        if state == "queued":
            still.jobs.stop(job.id, "cancel")
    for name in ("cat", "bobcat"):
        shutil.rmtree(root / name)


def test_a_job_whose_work_is_done_does_not_go_on(page, root, still):
    failed, done, cancelled = (still.jobs.add("evaluate", title, ["true"], str(root)) for title in ("evaluate it", "evaluate it", "evaluate other"))
    for job, status in ((failed, -9), (done, 0)):
        still.jobs.change(job.id, waits=False, runs=1)
        (root / ".cortado" / "jobs" / job.id / "status.json").write_text(json.dumps({"run": 1, "status": status}))
    still.jobs.stop(cancelled.id, "cancel")
    page.open("/jobs")
    lines = page.page.locator(".panel")
    expect(lines.filter(has_text="evaluate other").get_by_role("button", name="Go on")).to_be_visible()
    line = lines.filter(has_text="killed by SIGKILL").filter(has_text="evaluate it")
    expect(line.get_by_role("link", name=f"done by job {done.id}")).to_be_visible()
    expect(line.get_by_role("button", name="Go on")).to_have_count(0)


def test_a_paused_training_is_not_queued_again(page, model, still):
    job = still.jobs.add("train", "train small", ["true"], str(model))
    still.jobs.stop(job.id, "pause")
    page.open("/models/small")
    page.page.get_by_role("button", name="Train", exact=True).click()
    expect(page.page.get_by_text(f"Job {job.id} trains this model and is paused. Press Go on under Jobs.")).to_be_visible()
    assert [one.id for one, _ in still.jobs.all() if one.title == "train small"] == [job.id]
    still.jobs.stop(job.id, "cancel")
