#!/usr/bin/env python3
"""Finds words in comments, docstrings and pages that a native engineer would not write.

  scripts/prose.py [PATH...] [--since COMMIT]      exits with 1 where it finds some

Without a path, all comments of the C++, CUDA, Python, shell, CMake and proto files and all Markdown
pages of the project are searched; with --since, only lines that were added after COMMIT. A comment
should not open with a fragment ("What ...", "Of ...", "Whether ..."): write a sentence with subject
and verb. For words, WORDS says what to write instead.
"""
import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SLASHES = {".cpp", ".hpp", ".cu", ".cuh", ".h", ".c", ".in", ".proto", ".js"}
HASHES = {".py", ".pyi", ".sh", ".cmake", ".yml", ".toml"}
LEFT_OUT = ("models/", "tests/golden/", "tests/fuzz/corpus/", "CHANGELOG.md", "docs/layers/")
OPENERS = re.compile(r"^(What|Of|Whether|Whose|That|Those that|Who) (?!.*\?)")
WORDS = {
    r"\banew\b": "again",
    r"\bbehind\b(?! (a|the) (proxy|firewall|scenes|name|API|interface))": "after, following",
    r"\bbeside\b": "next to, besides, in parallel with, compared with",
    r"\bhad best\b": "should",
    r"\bso-maniest\b": "n-th",
    r"\b(is|are|has|have) none (that|of)\b": "no, not",
    r"\bthat there are some\b": "name the thing",
    r"\b(for|in|of|with|from|to|by|on) whose\b": "two sentences",
    r"\b(gone|goes|go|going) on with\b": "continues",
    r"\bas it lies\b|\bas they lie\b": "unchanged, in its layout",
    r"\bof which\b": "two sentences",
    r"\bin the place of\b": "instead of",
    r"\bat the begin\b": "at the beginning",
    r"\bbecause of that\b|\bwhereof\b|\bwherein\b|\bthereof\b": "two sentences",
}


def comments(path, text):
    """(line number, text, is first of its block) of each comment line, or of the prose of a page."""
    if path.suffix == ".md":
        yield from prose(text)
        return
    sign = "//" if path.suffix in SLASHES else "#"
    before = False
    for number, line in enumerate(text.splitlines(), 1):
        found = re.match(rf"\s*{sign}+!?<?\s(.*)", line) or re.search(rf"\S\s\s+{sign}\s(.*)", line)
        if not found:
            before = False
            continue
        is_whole = line.lstrip().startswith(sign)
        yield number, found[1], not (before and is_whole)
        before = is_whole and not found[1].rstrip().endswith(".")


def prose(text):
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code and not line.startswith("<!--"):
            yield number, re.sub(r"`[^`]*`", "", line), False


def docstrings(path, text):
    if path.suffix in (".py", ".pyi"):
        for found in re.finditer(r'"""(.*?)"""', text, re.DOTALL):
            first = text.count("\n", 0, found.start()) + 1
            for number, line in enumerate(found[1].splitlines(), first):
                yield number, line.strip(), number == first


def faults(path, text):
    for number, line, is_first in [*comments(path, text), *docstrings(path, text)]:
        if is_first and OPENERS.match(line):
            yield number, f"'{line.split()[0]} ...' is a fragment; write a sentence"
        for wrong, right in WORDS.items():
            if found := re.search(wrong, line):
                yield number, f"'{found[0]}': {right}"


def files(paths):
    listed = subprocess.run(["git", "ls-files", "--", *paths], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout
    for name in listed.splitlines():
        path = ROOT / name
        if path.suffix in SLASHES | HASHES | {".md"} and not name.startswith(LEFT_OUT) and path.is_file():
            yield path


def added_since(commit):
    """{path: numbers of the lines that were added}."""
    diff = subprocess.run(["git", "diff", "--unified=0", commit, "--"], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout
    added, path = {}, None
    for line in diff.splitlines():
        if line.startswith("+++ "):
            path = ROOT / line[6:]
        elif found := re.match(r"@@ \S+ \+(\d+)(?:,(\d+))?", line):
            first, count = int(found[1]), int(found[2] or 1)
            added.setdefault(path, set()).update(range(first, first + count))
    return added


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", metavar="PATH")
    parser.add_argument("--since", metavar="COMMIT", help="only lines added after this commit")
    options = parser.parse_args()
    added = added_since(options.since) if options.since else None
    count = 0
    for path in files(options.paths):
        for number, fault in faults(path, path.read_text(encoding="utf-8", errors="replace")):
            if added is None or number in added.get(path, ()):
                print(f"{path.relative_to(ROOT)}:{number}: {fault}")
                count += 1
    if count:
        print(f"{count} places; CONTRIBUTING.md says how we write", file=sys.stderr)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
