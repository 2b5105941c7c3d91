"""Profiles: the operators that a chip's toolchain supports, as data.

A profile is a file `profiles/NAME.json` of this package, or any file that is given with its folder
or its suffix. Adding the file adds the profile. Its keys:

    title         the chips and the toolchain
    format        "onnx", or "caffe" for a toolchain that reads Caffe's files, whose operators are layer types
    opset         {"from": 12, "to": 19, "default": 13}; "from" and "to" if the documentation gives them
    detection     "nms" or "raw": the default form of DetectionOutput
    operators     {operator: {limit: value}}: the supported operators; limits.py has the limits
    absent        {operator: reason}: missing operators that one would expect
    rewrites      names of rewrites (rewrites/), tried in this order on unsupported nodes or layers
    always        names of rewrites that are applied wherever possible
    sources       [{"page", "version", "read", "says"}]: the source of each fact, and the date it was read
    not_verified  sentences: what the documentation leaves open, or contradicts itself about
"""
import json
import json.scanner
import os
import pathlib
from dataclasses import dataclass

from .._caffe import InvalidArgument, IoError
from . import rewrites
from .limits import wrong_value
from .limits import problems as limit_problems

FOLDER = pathlib.Path(__file__).resolve().parent / "profiles"


@dataclass(frozen=True)
class Profile:
    """The content of a profile's file; `name` is the file's name."""
    name: str
    title: str
    operators: dict
    sources: list
    opset: dict = None
    format: str = "onnx"
    detection: str = "nms"
    absent: dict = None
    rewrites: tuple = ()
    always: tuple = ()
    not_verified: tuple = ()

    def takes_opset(self, opset):
        return self.opset.get("from", opset) <= opset <= self.opset.get("to", opset)

    @property
    def opsets(self):
        """The range of opsets in words."""
        first, last = self.opset.get("from"), self.opset.get("to")
        words = [f"from {first}"] if first else []
        return " ".join([*words, *([f"to {last}"] if last else [])]) or "any"

    def problems(self, node):
        """The reasons why the chip does not support a node; empty if it does."""
        if node.kind not in self.operators:
            what = "operators" if self.format == "onnx" else "layers"
            why = (self.absent or {}).get(node.kind, f"it is not among the {what} of {self.name}")
            return [f"{node.kind}: {why}"]
        return [f"{node.kind}: {text}" for text in limit_problems(node, self.operators[node.kind])]


def profile_names():
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def load_profile(name):
    """A profile of this package by name, or a profile from another file. Errors are InvalidArgument with
    file and line."""
    given = os.fspath(name)
    path = pathlib.Path(given)
    if path.suffix != ".json" and path.name == given:
        path = FOLDER / f"{given}.json"
        if not path.exists():
            raise InvalidArgument(f"there is no profile '{given}'; there are {', '.join(profile_names())}, and files "
                                  "(mychip.json)")
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise IoError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{path}: {error}") from None
    return _Reader(path, text).profile()


class _Table(dict):
    """An object of a JSON file that knows its position in the file."""
    start = 0


class _Decoder(json.JSONDecoder):
    """Makes a _Table of each object."""

    def __init__(self):
        super().__init__()
        self.parse_object = self._table
        self.scan_once = json.scanner.py_make_scanner(self)

    @staticmethod
    def _table(state, *rest):
        pairs, end = json.decoder.JSONObject(state, *rest)
        table = _Table(pairs)
        table.start = state[1]
        return table, end


def _is_list_of(kind):
    return lambda value: isinstance(value, list) and all(isinstance(item, kind) for item in value)


def _is_opset(value):
    if not isinstance(value, dict) or not {"default"} <= set(value) <= {"from", "to", "default"}:
        return False
    if any(type(number) is not int for number in value.values()):
        return False
    return value.get("from", 0) <= value["default"] <= value.get("to", value["default"])


# For each key: whether a file must have it, the test of its value, and a description of valid values.
_KEYS = {
    "title": (True, lambda value: isinstance(value, str), "a text"),
    "format": (False, lambda value: value in ("onnx", "caffe"), '"onnx" or "caffe"'),
    "opset": (False, _is_opset, 'a table {"from": 11, "to": 19, "default": 13}, of which the default alone is needed'),
    "operators": (True, lambda value: isinstance(value, dict) and all(isinstance(v, dict) for v in value.values()),
                  "a table of tables by operator"),
    "sources": (True, _is_list_of(dict), "a list of tables"),
    "detection": (False, lambda value: value in ("nms", "raw"), '"nms" or "raw"'),
    "absent": (False, lambda value: isinstance(value, dict) and all(isinstance(v, str) for v in value.values()),
               "a table of texts by operator"),
    "rewrites": (False, _is_list_of(str), "a list of names"),
    "always": (False, _is_list_of(str), "a list of names"),
    "not_verified": (False, _is_list_of(str), "a list of texts"),
}
_SOURCE = ("page", "version", "read", "says")


class _Reader:
    def __init__(self, path, text):
        self.path, self.text = path, text
        try:
            self.table = _Decoder().decode(text)
        except json.JSONDecodeError as error:
            raise InvalidArgument(f"{path}:{error.lineno}: {error.msg}") from None
        except RecursionError:
            raise InvalidArgument(f"{path}: tables in tables without end") from None
        if not isinstance(self.table, dict):
            raise InvalidArgument(f"{path}:1: a profile is a table")

    def fail(self, table, key, message):
        """Raises an error at the line of a key of a table, or of the table's beginning."""
        found = self.text.find(json.dumps(key), table.start) if key else -1
        line = self.text.count("\n", 0, table.start if found < 0 else found) + 1
        raise InvalidArgument(f"{self.path}:{line}: {f'{key}: ' if key else ''}{message}")

    def profile(self):
        for key in self.table:
            if key not in _KEYS:
                self.fail(self.table, key, f"a profile has no such key; it has {', '.join(_KEYS)}")
        for key, (is_needed, fits, form) in _KEYS.items():
            if key in self.table:
                if not fits(self.table[key]):
                    self.fail(self.table, key, f"must be {form}")
            elif is_needed:
                self.fail(self.table, None, f"{key} is missing")
        self.check_format()
        self.check_operators()
        self.check_sources()
        return Profile(self.path.stem, **self.table)

    def check_format(self):
        if self.table.get("format", "onnx") == "onnx":
            if "opset" not in self.table:
                self.fail(self.table, None, "opset is missing")
            return
        for key in ("opset", "detection", "always"):
            if key in self.table:
                self.fail(self.table, key, "is for models in ONNX; this profile's format is \"caffe\"")

    def check_operators(self):
        for operator, limits in self.table["operators"].items():
            for name, value in limits.items():
                wrong = wrong_value(name, value)
                if wrong:
                    self.fail(limits, name, f"{operator}: {wrong}")
        for key in ("rewrites", "always"):
            for name in self.table.get(key, []):
                of = self.table.get("format", "onnx")
                if rewrites.rewrite_of(name, of) is None:
                    self.fail(self.table, key, f"there is no rewrite '{name}'; there are {', '.join(rewrites.rewrite_names(of))}")

    def check_sources(self):
        for source in self.table["sources"]:
            for key in _SOURCE:
                if not isinstance(source.get(key), str):
                    self.fail(source, None, f"a source needs a text as its {key}")
        if not self.table["sources"]:
            self.fail(self.table, "sources", "a profile says where its facts are from")
