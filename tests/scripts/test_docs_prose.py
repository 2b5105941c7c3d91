"""The pages of docs/ are easy to read: short lines, short paragraphs, common technical words."""
import importlib.util
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")),
         ROOT / "models" / "README.md", ROOT / "benchmarks" / "README.md"]
COLUMNS, CHARACTERS = 100, 700

# Words that a reader would not search for, and their replacements.
WORDS = {
    r"\bfilms?\b": "video",
    r"\bupdate rules?\b|\b(solver|optimizer)'s rule\b|\brule of the (solver|optimizer)\b": "optimizer",
    r"\bthousand millions?\b": "billion, 10^9",
    r"\bfirst (choice|five)\b": "top-1, top-5",
}


def paragraphs(text):
    """(line, text) of the prose: items of lists are paragraphs; fences, comments, tables, headings and links do not count."""
    text = re.sub(r"^```.*?^```$|<!--.*?-->", lambda found: "\n" * found[0].count("\n"), text, flags=re.DOTALL | re.MULTILINE)
    prose, start = [], 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        is_item = re.match(r"\s*([*-]|\d+\.) ", line)
        is_prose = line.strip() and not line.startswith(("|", "#"))
        if prose and (is_item or not is_prose):
            yield start, "\n".join(prose)
            prose = []
        if is_prose:
            start = start if prose else number
            prose.append(line)


def faults(text):
    for start, paragraph in paragraphs(text):
        for number, line in enumerate(paragraph.split("\n"), start):
            if len(line) > COLUMNS and " " in line.strip("`*- "):
                yield f"{number}: {len(line)} columns, at most {COLUMNS}"
        if len(paragraph) > CHARACTERS:
            yield f"{start}: a paragraph of {len(paragraph)} characters, at most {CHARACTERS}"
    for number, line in enumerate(text.splitlines(), 1):
        for wrong, right in WORDS.items():
            found = re.search(wrong, line, re.IGNORECASE)
            if found:
                yield f"{number}: '{found[0]}'; say {right}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_is_easy_to_read(page):
    assert [f"{page.name}:{fault}" for fault in faults(page.read_text(encoding="utf-8"))] == []


PLAIN = ("include", "compat", "tools", "python", "proto", "scripts", "cmake", "src")


def test_comments_are_plain():
    done = subprocess.run([sys.executable, ROOT / "scripts/prose.py", *PLAIN], check=False, text=True, capture_output=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_fragments_and_foreign_words_are_found(tmp_path):
    spec = importlib.util.spec_from_file_location("prose", ROOT / "scripts/prose.py")
    prose = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(prose)
    text = ("// Whether a file can hold the op.\nbool Holds();\n// Is it there? What does it do?\nint x;  // of the batch, anew\n"
            "// True if it fits; see\n// What follows.\n")
    found = [(number, fault.split()[0]) for number, fault in prose.faults(tmp_path / "a.cpp", text)]
    assert found == [(1, "'Whether"), (4, "'anew':")]


SINGLE_DASH = re.compile(r"(?<![\w/.-])-(\w{2,})(?![\w-])")


def options_of_the_programs():
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tools").rglob("*.cpp"))
    return set(re.findall(r'"--([\w-]{2,})', sources) + re.findall(r"\bDEFINE_\w+\((\w+)", sources))


def single_dashes(text, options):
    """Lines with an option of the programs that has one dash. A line with both spellings explains them, so it is skipped."""
    for number, line in enumerate(text.splitlines(), 1):
        for name in SINGLE_DASH.findall(line):
            if name in options and "--" + name not in line and not re.search(r"\b(find|cortado_run) ", line):
                yield f"{number}: -{name}"


def test_options_are_written_with_two_dashes():
    """Checks pages, help and messages. The programs accept both forms, for scripts of older Caffes."""
    options = options_of_the_programs()
    assert {"gpu", "run_dir", "weights", "max_decoded_mb"} <= options
    found = [f"{page}:{fault}" for page in [ROOT / "README.md", *PAGES, *sorted((ROOT / "examples").rglob("*.md"))]
             for fault in single_dashes(page.read_text(encoding="utf-8"), options)]
    for folder in ("include", "src", "compat", "tools"):
        for path in sorted((ROOT / folder).rglob("*.[ch]pp")):
            literals = "\n".join(" ".join(re.findall(r'"((?:[^"\\]|\\.)*)"', line)) for line in
                                 path.read_text(encoding="utf-8").splitlines())
            found += [f"{path}:{fault}" for fault in single_dashes(literals, options)]
    assert found == []
    assert list(single_dashes("caffe time -gpu 0\n--gpu, -gpu\na -1, -gpu-x, x-gpu, find -name", {"gpu", "name"})) == ["1: -gpu"]


@pytest.mark.parametrize("text, fault", [
    ("# A\n\n" + "word " * 21, "3: 105 columns, at most 100"),
    ("a\n\n* " + "word and word,\n" * 50, "3: a paragraph of 751 characters, at most 700"),
    ("A film.", "1: 'film'; say video"), ("two thousand\nten thousand million", "2: 'thousand million'; say billion, 10^9"),
    ("| the update rule |", "1: 'update rule'; say optimizer"), ("its First choice", "1: 'First choice'; say top-1, top-5"),
])
def test_faults_are_found(text, fault):
    assert list(faults(text)) == [fault]


@pytest.mark.parametrize("text", ["```sh\n" + "x " * 100 + "\n```", "| " + "cell " * 50 + "|", "<!-- " + "word " * 30 + "-->",
                                  "* a\n" * 300, "include { phase: TRAIN } is a rule"])
def test_good_text_has_no_faults(text):
    assert not list(faults(text))
