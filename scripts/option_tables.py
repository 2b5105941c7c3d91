#!/usr/bin/env python3
"""Writes docs/options.md: every option of nets, layers and solvers, from the schema and its comments.

  scripts/option_tables.py [--caffe build/cpu-release/bin/caffe] [--check]

Needs protoc and Python's protobuf. --check changes nothing and fails if the page is out of date.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import textwrap

from google.protobuf import descriptor_pb2

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "proto" / "caffe" / "proto" / "caffe.proto"
PAGE = ROOT / "docs" / "options.md"
HEAD = """# Options

Look up a field of a net, a layer or a solver: its type, its default and its meaning. A field that
says *repeated* may be given several times. `caffe layers TYPE` prints a layer's options in the
terminal. [layers.md](layers.md) says what is supported and tested of each type.

`scripts/option_tables.py` makes this page from `proto/caffe/proto/caffe.proto`.

"""
# The top-level messages; all other messages are found through their fields.
ROOTS = ("SolverParameter", "NetParameter", "LayerParameter")
# Old messages, which are only read and upgraded.
OLD = ("V1LayerParameter", "V0LayerParameter", "BlobProto")
Field = descriptor_pb2.FieldDescriptorProto


def schema():
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "schema"
        subprocess.run(["protoc", "--include_source_info", f"--proto_path={SCHEMA.parent}", f"--descriptor_set_out={output}",
                        SCHEMA.name], check=True)
        return descriptor_pb2.FileDescriptorSet.FromString(output.read_bytes()).file[0]


def comments(file):
    """Comments next to or above each part of the file, by its path of numbers."""
    return {tuple(place.path): " ".join((place.leading_comments + " " + place.trailing_comments).split())
            for place in file.source_code_info.location}


class Schema:
    """Messages and enums by full name, with their comments."""

    def __init__(self, file):
        self.messages, self.enums, self.paths, self.comments = {}, {}, {}, comments(file)
        for number, enum in enumerate(file.enum_type):
            self.enums[f".{file.package}.{enum.name}"] = enum
        for number, message in enumerate(file.message_type):
            self._add(f".{file.package}", message, (4, number))

    def _add(self, scope, message, path):
        name = f"{scope}.{message.name}"
        self.messages[name], self.paths[name] = message, path
        for enum in message.enum_type:
            self.enums[f"{name}.{enum.name}"] = enum
        for number, inner in enumerate(message.nested_type):
            self._add(name, inner, path + (3, number))

    def reachable(self):
        """Names of messages, each after the first message that has it as a field."""
        names = [f".caffe.{root}" for root in ROOTS]
        for name in names:
            for field in self.messages[name].field:
                if field.type == Field.TYPE_MESSAGE and field.type_name not in names and short(field.type_name) not in OLD:
                    names.append(field.type_name)
        return names

    def type_of(self, field):
        if field.type == Field.TYPE_MESSAGE:
            target = short(field.type_name)
            return target if target in OLD else f"[{target}](#{target.lower().replace('.', '')})"
        if field.type == Field.TYPE_ENUM:
            return ", ".join(f"`{value.name}`" for value in self.enums[field.type_name].value)
        return Field.Type.Name(field.type)[5:].lower()

    def table(self, name):
        message, path = self.messages[name], self.paths[name]
        text = f"\n## {short(name)}\n\n"
        about = self.comments.get(path, "")
        if about:
            text += textwrap.fill(about, 100, break_long_words=False, break_on_hyphens=False) + "\n\n"
        text += "| field | type | default | |\n|---|---|---|---|\n"
        for number, field in enumerate(message.field):
            kind = self.type_of(field) + (", repeated" if field.label == Field.LABEL_REPEATED else "")
            default = f"`{field.default_value}`" if field.default_value else ""
            note = self.comments.get(path + (2, number), "").replace("|", "\\|")
            text += f"| `{field.name}` | {kind} | {default} | {note} |\n"
        return text


def short(name):
    return name.removeprefix(".caffe.")


def layers(caffe, schema_):
    fields = {field.name: short(field.type_name) for field in schema_.messages[".caffe.LayerParameter"].field}
    text = "## Layer types\n\n| type | options |\n|---|---|\n"
    output = subprocess.run([caffe, "layers", "--json"], capture_output=True, text=True, check=True).stdout
    for layer in json.loads(output)["types"]:
        links = ", ".join(f"[{option}](#{fields[option].lower()})" for option in layer["fields"])
        text += f"| `{layer['type']}` | {links}{'' if layer['supported'] else ' (not supported)'} |\n"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--caffe", default=str(ROOT / "build/cpu-release/bin/caffe"))
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    schema_ = Schema(schema())
    text = HEAD + layers(options.caffe, schema_) + "".join(schema_.table(name) for name in schema_.reachable())
    if not options.check:
        PAGE.write_text(text, encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != text:
        sys.exit("docs/options.md is out of date; run scripts/option_tables.py")


if __name__ == "__main__":
    main()
