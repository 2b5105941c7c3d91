#!/usr/bin/env python3
"""Checks that what a source defines in an unnamed namespace has a name of its own in its library or program.

  scripts/check_names.py BUILD     prints file:line and the other place; exits with 1 on a clash

Sources are compiled several at a time (cmake/Unity.cmake), and the sanitizers' builds join more than the
others: a clash may be seen by them alone. What is one target's, the configured build folder BUILD knows.
Functions may be overloaded: they clash if their types are the same. Left out are targets of which no build
joins more than ten sources.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
JOINED_BY_TEN = {"caffe_cpu", "cortado_kernels", "cortado_runtime", "cuda_kernels_on_host"}
TYPE = re.compile(r"(?:class|struct|enum(?: class| struct)?|union)\s+(\w+)[^;(]*(?:\{|$)")
ALIAS = re.compile(r"using\s+(\w+)\s*=")
VARIABLE = re.compile(r"(?:(?:inline|static|const|constexpr|constinit|thread_local)\s+)+[\w:<>,*& ]*?[\s*&](\w+)"
                      r"\s*(?:\[[^\]]*\]\s*)*[={;]")
FUNCTION = re.compile(r"[\w:<>,*&\[\] ]*?[\s*&](\w+)\((.*)")


def parameter_types(text):
    """The parameters' types of a function from the text after its `(`; names and default values go."""
    depth, current, parts = 0, "", []
    for character in text:
        if character in "(<[{":
            depth += 1
        elif character in ")>]}":
            depth -= 1
            if depth < 0:
                break
        if character == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += character
    parts.append(current)
    return tuple(type_of(part.split("=")[0].strip()) for part in parts)


def type_of(parameter):
    return re.sub(r"\s*\b\w+$", "", parameter) if re.search(r"[ &*]", parameter) else parameter


def definitions(path):
    """Yields (key, name, line) of what the file's unnamed namespaces define at their outermost level."""
    lines = path.read_text(encoding="utf-8").splitlines()
    inside = False
    for number, line in enumerate(lines, 1):
        if line.startswith("namespace {"):
            inside = True
        elif line.startswith("}  // namespace"):
            inside = inside and line.strip() != "}  // namespace"
        if not inside or not line or not (line[0].isalpha() or line[0] == "_"):
            continue
        if match := TYPE.match(line) or ALIAS.match(line):
            yield match.group(1), match.group(1), number
        elif match := FUNCTION.match(line):
            rest = " ".join([match.group(2), *(text.strip() for text in lines[number:number + 8])])
            before = lines[number - 2] if number > 1 else ""
            yield (match.group(1), before.startswith("template"), parameter_types(rest)), match.group(1), number
        elif match := VARIABLE.match(line):
            yield match.group(1), match.group(1), number


def sources_of_targets(build):
    """The sources of each target of the build that joins them, by its name."""
    targets = {}
    for joined in sorted(build.rglob("unity/*_*.cpp")):
        name = joined.stem.rpartition("_")[0]
        targets.setdefault(name, []).extend(re.findall(r'#include "([^"]+)"', joined.read_text(encoding="utf-8")))
    return targets


def check(build, root=ROOT):
    for target, sources in sources_of_targets(build).items():
        if target in JOINED_BY_TEN:
            continue
        seen = {}
        for source in sorted(set(sources)):
            for key, name, line in definitions(root / source):
                other, place = seen.setdefault(key, (source, line))
                if other != source:
                    yield f"{source}:{line}: {name} is defined at {other}:{place} too; rename one of them"


def main():
    if len(sys.argv) != 2 or not sources_of_targets(pathlib.Path(sys.argv[1])):
        sys.exit("one argument: a folder in which a preset that joins sources was configured (build/cpu-release)")
    problems = list(check(pathlib.Path(sys.argv[1])))
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
