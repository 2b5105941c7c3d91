#!/usr/bin/env python3
"""Writes the prototxts of the models and of the benchmarks: repetitive text is better generated than typed.

  models/generate.py            writes models/*/*.prototxt and benchmarks/nets
  models/generate.py --check    exits with 1 when a committed file differs from what it would write

Each module of models/families has `files()`: path, message and a comment for the top of the file. Needs
protoc and Python's protobuf, nothing that was built.
"""
import argparse
import importlib
import pathlib
import sys

from google.protobuf import text_format

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "models")]

import caffe_definitions  # noqa: E402

caffe_definitions.provide()
from caffe.net_spec import is_repeated  # noqa: E402

WIDTH = 100


def lines(message, indent=""):
    """The text form of a message: a line for each field, and for each message that fits on one."""
    for field, value in message.ListFields():
        for item in value if is_repeated(field) else [value]:
            if field.message_type is None:
                text = text_format.MessageToString(type(message)(**{
                    field.name: [item] if is_repeated(field) else item}), as_one_line=True)
                yield f"{indent}{text.strip()}"
                continue
            body = text_format.MessageToString(item, as_one_line=True).strip()
            whole = f"{indent}{field.name} {{ {body} }}" if body else f"{indent}{field.name} {{}}"
            if indent and len(whole) <= WIDTH:
                yield whole
            else:
                yield f"{indent}{field.name} {{"
                yield from lines(item, indent + "  ")
                yield f"{indent}}}"


def text_of(message, comment):
    head = [f"# {line}".rstrip() for line in comment.strip().splitlines()]
    return "\n".join([*head, *lines(message)]) + "\n"


def files():
    """Path (relative to the repository) -> text."""
    for family in sorted((ROOT / "models" / "families").glob("*.py")):
        module = importlib.import_module(f"families.{family.stem}")
        for path, message, comment in getattr(module, "files", lambda: ())():
            yield path, text_of(message, comment)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the committed files")
    check = parser.parse_args().check
    different = []
    for path, text in files():
        target = ROOT / path
        if check:
            if not target.exists() or target.read_text() != text:
                different.append(path)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
    for path in different:
        print(f"{path} differs; run models/generate.py", file=sys.stderr)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
