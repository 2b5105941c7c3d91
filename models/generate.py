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

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "models")]

import caffe_definitions  # noqa: E402

caffe_definitions.provide()
from caffe.prototxt import text_of  # noqa: E402


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
