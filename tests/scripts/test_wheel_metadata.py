"""What a package index shows of the wheel."""
import pathlib

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
    # Not allowed beside an expression (PEP 639).
    assert not [classifier for classifier in PROJECT["classifiers"] if classifier.startswith("License ::")]


def test_classifiers_are_known():
    known = pytest.importorskip("trove_classifiers", reason="no trove-classifiers").classifiers
    assert set(PROJECT["classifiers"]) <= known
