#!/usr/bin/env python3
"""Checks every #include, and every use of the façade Caffe::, against the tables of ARCHITECTURE.md.

  scripts/check_includes.py [ROOT]     prints file:line and what is allowed there; exits with 1 on a violation
"""
import fnmatch
import pathlib
import re
import sys

SOURCES = {".cpp", ".hpp", ".cu", ".cuh", ".h"}
INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')
FACADE = re.compile(r"(?<![\w:])(?:::)?(?:caffe::)?Caffe::")


def read_table(text, heading):
    """Rows of the Markdown table whose first header cell is `heading`: (names, cells) in order."""
    match = re.search(rf"^\|\s*{re.escape(heading)}\s*\|.*\n\|[-|: ]+\|\n((?:\|.*\n?)+)", text, re.M)
    if not match:
        sys.exit(f"ARCHITECTURE.md has no table that begins with '{heading}'")
    for line in match.group(1).splitlines():
        left, right = [cell.strip() for cell in line.strip().strip("|").split("|")]
        yield re.findall(r"`([^`]+)`", left), [word.strip() for word in right.split(",") if word.strip()]


class Rules:
    def __init__(self, text):
        self.folders = {name: cells for names, cells in read_table(text, "Folder") for name in names}
        self.public = [(name, cells[0]) for names, cells in read_table(text, "Public header") for name in names]
        self.outside = [(name, cells) for names, cells in read_table(text, "Outside name") for name in names]

    def place(self, path):
        """A file's place: its path in src/caffe or the repository, without suffix; for public headers in their folder."""
        parts = path.with_suffix("").parts
        if parts[:2] == ("src", "caffe"):
            return "/".join(parts[2:])
        if parts[:2] == ("include", "caffe"):
            folder = self.owner_of_public(parts[-1]) or "public" if len(parts) == 3 else parts[2]
            return f"{folder}/{parts[-1]}"
        return "/".join(parts)

    def owner_of_public(self, name):
        return next((folder for pattern, folder in self.public if fnmatch.fnmatch(name, pattern)), None)

    def allowed(self, place):
        """Folders that a file at this place may include besides its own; None if no row covers it."""
        folder = place.split("/")[0]
        if folder == "public":
            return ["any"]
        for pattern in sorted(self.folders, key=len, reverse=True):
            if pattern != "tests/*" and (folder == pattern or fnmatch.fnmatch(place, pattern)
                                         or place.startswith(pattern + "/")):
                return self.folders[pattern]
        if folder == "tests":
            mirrored = place.split("/")[1]
            return [mirrored, "tests/support", *self.folders.get(mirrored, [])]
        return None

    def breach(self, place, header):
        """Describes what is wrong with including this header at this place; None if it is allowed."""
        for pattern, legal in self.outside:
            if fnmatch.fnmatch(header, pattern) and not within(place, legal):
                return f"{header} is legal only in {', '.join(legal)}"
        parts = header.split("/")
        if parts[0] == "tests":
            target, public = "/".join(parts[:2]), False
        elif parts[0] == "caffe":
            public = len(parts) == 2
            target = self.owner_of_public(pathlib.Path(parts[1]).stem) if public else parts[1]
        elif parts[0] == "compat":
            public, target = False, "compat"
        else:
            return None
        if target is None:
            return f"{header} is not in the table of public headers"
        allowed = self.allowed(place)
        if allowed is None:
            return f"'{place.split('/')[0]}' has no row in the table of folders"
        own = "/".join(place.split("/")[:2]) if place.startswith("tests/") else place.split("/")[0]
        if target == own or target in allowed or "any" in allowed or (public and "public" in allowed):
            return None
        return f"{own} may not include {target}; allowed: {', '.join([own, *allowed])}"


def within(place, folders):
    return any(place == folder or place.startswith(folder + "/") for folder in folders)


def check(root):
    rules = Rules((root / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    facade = next((legal for name, legal in rules.outside if name == "Caffe::"), [])
    tops = ("include", "src", "compat", "tools", "python", "examples", "benchmarks", "tests")
    files = sorted(f for top in tops for f in (root / top).rglob("*") if f.suffix in SOURCES)
    for file in files:
        path = file.relative_to(root)
        place = rules.place(path)
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            include = INCLUDE.match(line)
            problem = rules.breach(place, include.group(1)) if include else None
            if FACADE.search(line.split("//")[0]) and not within(place, facade):
                problem = f"Caffe:: is legal only in {', '.join(facade)}; pass what is needed as an argument"
            if problem:
                yield f"{path}:{number}: {problem}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    problems = list(check(root))
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
