"""Pages written by scripts agree with the build."""
import sys

import pytest

from programs import ROOT


@pytest.mark.parametrize("script", ["layer_pages.py", "option_tables.py"])
def test_is_up_to_date(script, program, run):
    done = run(sys.executable, f"scripts/{script}", "--check", "--caffe", program("caffe"))
    assert done.returncode == 0, done.stderr


@pytest.fixture(name="pages")
def module_of_layer_pages(monkeypatch, tmp_path):
    """The module, with pages in an empty folder."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import layer_pages  # pylint: disable=import-outside-toplevel
    monkeypatch.setattr(layer_pages, "ROOT", tmp_path)
    monkeypatch.setattr(layer_pages, "PAGES", tmp_path)
    return layer_pages


@pytest.mark.parametrize("old, new, said", [
    ("<!-- kind: Activations -->", "<!-- kind: Nothing -->", "no '<!-- kind: ... -->'"),
    ("## Bottoms and tops", "## Shapes", "no '## Bottoms and tops'"),
    ("```prototxt", "```text", "no '## Example' with a prototxt block"),
    ("# ReLU", "# Other", "no '# ReLU' and a sentence")])
def test_what_a_page_of_a_layer_lacks_is_named(pages, tmp_path, old, new, said):
    page = (ROOT / "docs" / "layers" / "ReLU.md").read_text(encoding="utf-8")
    (tmp_path / "ReLU.md").write_text(page, encoding="utf-8")
    assert pages.Page("ReLU").kind == "Activations"
    (tmp_path / "ReLU.md").write_text(page.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ValueError, match="ReLU.md: " + said.replace("(", r"\(").replace("*", r"\*").replace(".", r"\.")):
        pages.Page("ReLU")


@pytest.mark.parametrize("example, said", [
    ('layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 } } }', "has no such layer"),
    ('layer { name: "y" type: "ReLU" bottom: "x" top: "y" }', "unknown bottom"),
    ("""layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 } } }
        layer { name: "n" type: "Power" bottom: "x" top: "y" power_param { power: -0.5 scale: 0 shift: -1 } }
        layer { name: "r" type: "ReLU" bottom: "y" top: "z" }""", "is not finite")])
def test_an_example_that_does_not_run_is_an_error(pages, example, said):
    with pages.layer_examples.folder(), pytest.raises(ValueError, match=said):
        pages.layer_examples.run("ReLU", example)
