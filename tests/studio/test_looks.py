"""How the pages look, in a browser: colours, and what is there while a page waits."""
import pathlib
import re
import shutil
import threading

import pytest
from playwright.sync_api import expect

import browser
from caffe.studio.pages import data

expect.set_options(timeout=browser.LIMIT)
STILL = "*, *::before, *::after { transition: none !important; animation: none !important; }"  # colours do not change slowly
CONTRAST = pathlib.Path(__file__).with_name("contrast.js").read_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_can_be_read(page, scheme, model, still):
    """No text has less contrast than WCAG's level AA asks for."""
    (model / "train_val.prototxt").write_text('# a net for 10 classes\nlayer { name: "x" type: "Input" top: "x" input_param { shape { dim: 4 } } }\n')
    still.jobs.add("train", "a job", ["true"], str(model))
    screen = page.page
    screen.emulate_media(color_scheme=scheme)
    for path, sign in (("/", "runs/first"), ("/runs/runs/first", "iteration"), ("/data", "Send a set"), ("/models", "small"), ("/sweeps", "New sweep"),
                       ("/jobs", "a job"), ("/models/small", "Export ONNX")):
        page.open(path)
        expect(screen.get_by_text(sign).first).to_be_visible()
        expect(screen.locator("body")).to_have_class(re.compile("body--" + scheme))
        screen.add_style_tag(content=STILL)
        assert screen.evaluate(CONTRAST) == [], path
    screen.get_by_role("tab", name="Definition").click()
    expect(screen.locator(".cm-line:visible").first).to_be_visible()
    assert screen.evaluate(CONTRAST) == []
    for job, _ in still.jobs.all():
        still.jobs.stop(job.id, "cancel")


def test_the_editor_knows_comments(page, model):
    text = "# a net for 10 classes"
    (model / "train_val.prototxt").write_text(text + '\nname: "net # 1"\nlayer { name: "x" type: "Input" top: "x" input_param { shape { dim: 4 } } }\n')
    screen = page.page
    page.open("/models/small")
    screen.get_by_role("tab", name="Definition").click()
    lines = screen.locator(".cm-line:visible")
    expect(lines.nth(0).locator("span")).to_have_text([text])  # in one colour
    expect(lines.nth(1).locator("span").last).to_have_text('"net # 1"')


def test_a_large_set_is_being_read(page, root, monkeypatch):
    for kind in ("cat", "dog"):
        (root / "large" / kind).mkdir(parents=True)
        shutil.copy(root.parent / "one.png", root / "large" / kind / "one.png")
    seen, look = threading.Event(), data._look  # pylint: disable=protected-access
    monkeypatch.setattr(data, "_look", lambda folder: seen.wait() and look(folder))
    screen = page.page
    page.open("/data/large")
    expect(screen.get_by_role("status")).to_contain_text("a large set takes a while")
    seen.set()
    expect(screen.get_by_text("folders of classes")).to_be_visible()
    expect(screen.get_by_role("status")).to_have_count(0)
    shutil.rmtree(root / "large")
