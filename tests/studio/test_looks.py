"""How the pages look, in a browser."""
from playwright.sync_api import expect

import browser

expect.set_options(timeout=browser.LIMIT)


def test_the_editor_knows_comments(page, model):
    text = "# a net for 10 classes"
    (model / "train_val.prototxt").write_text(text + '\nname: "net # 1"\nlayer { name: "x" type: "Input" top: "x" input_param { shape { dim: 4 } } }\n')
    screen = page.page
    page.open("/models/small")
    screen.get_by_role("tab", name="Definition").click()
    lines = screen.locator(".cm-line:visible")
    expect(lines.nth(0).locator("span")).to_have_text([text])  # in one colour
    expect(lines.nth(1).locator("span").last).to_have_text('"net # 1"')
