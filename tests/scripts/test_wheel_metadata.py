"""The wheel's metadata for a package index, and the instructions for installing it."""
import pathlib
import re
import subprocess

import pytest

tomllib = pytest.importorskip("tomllib", reason="Python 3.11 or newer")
ROOT = pathlib.Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_has_what_an_index_shows():
    for field in ("description", "readme", "authors", "keywords", "classifiers", "urls", "requires-python"):
        assert PROJECT[field], field


def test_the_licence_is_an_expression_with_its_file():
    assert PROJECT["license"] == "BSD-2-Clause"
    assert [(ROOT / name).exists() for name in PROJECT["license-files"]] == [True]
    # Not allowed in addition to an expression (PEP 639).
    assert not [classifier for classifier in PROJECT["classifiers"] if classifier.startswith("License ::")]


def test_classifiers_are_known():
    known = pytest.importorskip("trove_classifiers", reason="no trove-classifiers").classifiers
    assert set(PROJECT["classifiers"]) <= known


def test_nobody_is_sent_to_the_other_project_of_this_name():
    """PyPI's `cortado` is another project."""
    files = subprocess.run(["git", "ls-files", "README.md", "docs", "examples", "python", "scripts", "src", "tools"], cwd=ROOT,
                           capture_output=True, text=True, check=True).stdout.splitlines()
    wrong = re.compile(r"pip install[^\n`]*[\s\"']+cortado(\[|['\"`\s]|$)", re.MULTILINE)
    assert [name for name in files if wrong.search((ROOT / name).read_text(encoding="utf-8", errors="replace"))] == []


def test_pages_that_install_from_pypi_say_that_it_needs_an_environment():
    """Debian and Ubuntu refuse pip elsewhere (PEP 668)."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "neighbours").glob("*.md")]
    texts = {page.relative_to(ROOT).as_posix(): page.read_text() for page in pages}
    found = [page for page, text in texts.items() if "pip install" in text]
    assert "docs/studio.md" in found
    assert [page for page in found if "environment" not in texts[page]] == []
