"""Every fenced block of README.md and of docs/ does what the page says.

    ```python            runs; the blocks of a page are one program
    ```prototxt [FILE]   is a net or a solver (or some of its fields); with FILE it is written for the blocks after it
    ```json [FILE]       is a JSON document; with FILE it is written for the blocks after it
    ```c                 compiles as C with the installed headers
    ```cpp [FILE]        compiles with the installed headers; a FILE old_* with the headers of Caffe's API
    ```sh run            each line runs, in a copy of the repository with the programs of the build
    ```sh [FILE]         is a shell script, not run; with FILE it is written for the blocks after it
    ```text              is not checked

Setup that a page does not show runs first: <!-- before the blocks: ... --> contains Python.
"""
import atexit
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import pytest
from google.protobuf import text_format

import caffe
from caffe.proto import caffe_pb2
from programs import BINARIES, ROOT, Workplace

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LANGUAGES = ("python", "prototxt", "json", "c", "cpp", "sh", "text")
BLOCK = re.compile(r"^```(\S*) *(.*)\n((?:.*\n)*?)^```$", re.MULTILINE)
BEFORE = re.compile(r"<!-- before the blocks:\n(.*?)-->", re.DOTALL)


def blocks_of(text):
    """(line, language, argument, source) of the fenced blocks of a page."""
    return [(text.count("\n", 0, found.start()) + 2, found[1], found[2].strip(), found[3]) for found in BLOCK.finditer(text)]


@functools.lru_cache(maxsize=None)
def installed_headers():
    """The folder of headers as users have it."""
    prefix = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
    atexit.register(prefix.cleanup)
    for component in ("development", "runtime"):
        subprocess.run(["cmake", "--install", BINARIES.parent, "--component", component, "--prefix", prefix.name], check=True,
                       stdout=subprocess.DEVNULL)
    return pathlib.Path(prefix.name) / "include"


class Page:
    """Runs the blocks of a page in a folder, in order."""

    def __init__(self, name, text, folder):
        self.name, self.source, self.folder, self.namespace = name, text, folder, {"__name__": "__main__"}

    def run(self):
        before = BEFORE.search(self.source)
        if before:
            self.python(self.source.count("\n", 0, before.start(1)) + 1, "", before[1])
        for line, language, argument, source in blocks_of(self.source):
            act = getattr(self, language, None) if language in LANGUAGES else None
            assert act, f"{self.name}:{line}: the block's language is {language!r}; one of {', '.join(LANGUAGES)}"
            act(line, argument, source)

    def python(self, line, argument, source):
        # Tracebacks and assertions show the page's own lines.
        exec(compile("\n" * (line - 1) + source, self.name, "exec"), self.namespace)  # pylint: disable=exec-used

    def prototxt(self, line, argument, source):
        errors = []
        for message in (caffe_pb2.NetParameter, caffe_pb2.SolverParameter, caffe_pb2.UserConfig):
            try:
                text_format.Parse(source, message())
                break
            except text_format.ParseError as error:
                errors.append(f"{message.DESCRIPTOR.name}: {error}")
        else:
            try:
                with tempfile.NamedTemporaryFile("w", suffix=".prototxt") as file:  # a short net
                    file.write(source)
                    file.flush()
                    caffe.read_net(file.name)
            except caffe.Error as error:
                pytest.fail(f"{self.name}:{line}: neither a net nor a solver nor defaults: {'; '.join(errors)}; short net: {error}")
        self._write(argument, source)

    def json(self, line, argument, source):
        try:
            json.loads(source)
        except json.JSONDecodeError as error:
            pytest.fail(f"{self.name}:{line}: {error}")
        self._write(argument, source)

    def c(self, line, argument, source):
        self._compile(line, argument or "block.c", source, "CC", "cc", "-std=c99")

    def cpp(self, line, argument, source):
        old = [f"-I{installed_headers() / 'caffe' / 'compat'}"] if argument.startswith("old_") else []
        self._compile(line, argument or "block.cpp", source, "CXX", "c++", "-std=c++20", *old)

    def sh(self, line, argument, source):
        assert argument in ("", "run") or "." in argument, f"{self.name}:{line}: '```sh {argument}': only 'run' or a file is known"
        shell = ["bash", "-euo", "pipefail"] if argument == "run" else ["bash", "-n"]
        done = subprocess.run([*shell, "-c", source], cwd=self.folder, text=True, check=False, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, env={
                                  **os.environ, "CAFFE_BIN": str(BINARIES), "PYTHONPATH": str(BINARIES.parent / "python"), "PYTHON": sys.executable,
                                  "PATH": f"{self.folder / '.path'}:{BINARIES}:{os.environ['PATH']}"})
        assert done.returncode == 0, f"{self.name}:{line}: {done.stdout[-4000:]}"
        self._write("" if argument == "run" else argument, source)

    def text(self, line, argument, source):
        pass

    def _compile(self, line, name, source, variable, default, *flags):
        compiler = shutil.which(os.environ.get(variable, default))
        assert compiler, f"no compiler; {variable} names one"
        self._write(name, source)
        done = subprocess.run([compiler, "-fsyntax-only", "-Wall", "-Wextra", *flags, f"-I{installed_headers()}", name],
                              cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and not done.stderr, f"{self.name}:{line}: {done.stderr[-4000:]}"

    def _write(self, name, source):
        if name:
            (self.folder / name).write_text(source)


def repository(folder):
    """A copy of the definitions, with the scripts and the build in the places where a user has them."""
    Workplace(folder)
    for name in ("scripts", "python", "tools"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "build").mkdir()
    (folder / "build" / "cpu-release").symlink_to(BINARIES.parent)
    (folder / ".path").mkdir()
    (folder / ".path" / "python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (folder / ".path" / "python3").chmod(0o755)
    return folder


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_page(page, tmp_path, monkeypatch):
    text = page.read_text(encoding="utf-8")
    languages = {language for _, language, _, _ in blocks_of(text)}
    if {"python", "sh"} & languages and not list((BINARIES.parent / "python" / "caffe").glob("_caffe*.so")):
        pytest.skip("package caffe is not built")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(repository(tmp_path) if languages else tmp_path)
    Page(page.name, text, tmp_path).run()


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_code_is_in_fences(page):
    """Indented text is not run, so it must not be code."""
    lines = page.read_text(encoding="utf-8").splitlines()
    fenced = False
    for number, line in enumerate(lines, 1):
        fenced ^= line.startswith("```")
        before = lines[number - 2] if number > 1 else ""
        assert fenced or not line.startswith("    ") or before.strip(), \
            f"{page.name}:{number}: an indented block; put it between ```LANGUAGE and ```"


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent.name == "course"], ids=lambda path: path.name)
def test_lessons_need_nothing_that_they_do_not_show(page):
    """A reader types what the page shows, so no lesson may depend on a hidden setup."""
    assert not BEFORE.search(page.read_text(encoding="utf-8"))


def test_lessons_do_not_share_folders():
    """A reader does them in one clone, and `make_scenes.py` and `caffe new` refuse a folder that exists."""
    made = [name for page in PAGES if page.parent.name == "course"
            for name in re.findall(r"make_scenes\.py (\S+)|caffe new \S+ --output=(\w+)", page.read_text(encoding="utf-8"))]
    assert len(made) == len(set(made)) and len(made) >= 5


@pytest.mark.parametrize("block, error", [
    ("python\nx = 1\nassert x == 2, f'x is {x}'", "x is 1"), ("prototxt\nlayer { nome: 'x' }", "page.md:4: neither"),
    ("prototxt\nbase_lr: 'x'", "neither"), ("cpp\nint f() { return g(); }", "page.md:4"), ("sh run\nfalse | true", "page.md:4"),
    ("sh\nif", "syntax error"), ("sh later\ntrue", "only 'run'"), ("\nx", "language is ''"), ("yaml\nx", "language is 'yaml'")])
def test_wrong_blocks_are_found(block, error, tmp_path):
    page = Page("page.md", f"# Title\n\n```{block}\n```\n", tmp_path)
    with pytest.raises((AssertionError, pytest.fail.Exception), match=re.escape(error)):
        page.run()


def test_blocks_of_a_page_are_one_program(tmp_path):
    page = Page("page.md", "<!-- before the blocks:\nx = [1]\n-->\n```python\nx.append(2)\n```\ntext\n```prototxt a.prototxt\n"
                "base_lr: 1\n```\n```python\ny = x\n```\n", tmp_path)
    page.run()
    assert page.namespace["y"] == [1, 2] and (tmp_path / "a.prototxt").read_text() == "base_lr: 1\n"
