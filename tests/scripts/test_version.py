"""The version is written once, in project() of CMakeLists.txt; all other places agree with it."""
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARIES = pathlib.Path(os.environ.get("CAFFE_BINARY_DIR", ROOT / "build" / "cpu-release")).resolve() / "bin"
VERSION = re.search(r"^project\(cortado VERSION (\d+\.\d+\.\d+) ", (ROOT / "CMakeLists.txt").read_text(), re.M).group(1)


def test_the_newest_release_of_the_changelog():
    headings = re.findall(r"^## \[(.*)\](.*)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert headings[0] == ("Unreleased", "")
    assert headings[1][0] == VERSION
    for _, date in headings[1:]:
        assert re.fullmatch(r" - \d{4}-\d{2}-\d{2}", date)


def test_the_program_prints_it():
    if not (BINARIES / "caffe").exists():
        pytest.skip(f"caffe is not built in {BINARIES}")
    printed = subprocess.run([BINARIES / "caffe", "--version"], text=True, check=True, stdout=subprocess.PIPE).stdout
    assert VERSION in printed.split("\n", maxsplit=1)[0]


def test_no_other_file_states_it():
    files = ["pyproject.toml", "CMakePresets.json", "README.md", *(str(path.relative_to(ROOT)) for folder in (
        "cmake", "containers", "docs", "include", "python", "scripts", "src", "tools", ".github")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts)]
    named = re.compile(rb"(?<![\d.])" + re.escape(VERSION).encode() + rb"(?![\d.])")
    assert [file for file in files if named.search((ROOT / file).read_bytes())] == []
