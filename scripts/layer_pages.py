#!/usr/bin/env python3
"""Writes the generated half of docs/layers/TYPE.md, the page of each layer type, and docs/layers.md, their list.

  scripts/layer_pages.py [--caffe build/cpu-release/bin/caffe] [--check] [TYPE...]

The first half of a page is written by hand: kind, first sentence, formula, bottoms and tops, an example and differences
between Caffes. The script runs the example and writes the shapes of its blobs below it, the options from `caffe layers`,
and the type's support and tests, from the sources and tests/. --check changes nothing and fails if a page is missing or
out of date.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

import layer_examples

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "docs" / "layers.md"
PAGES = ROOT / "docs" / "layers"
MARK = "<!-- scripts/layer_pages.py writes what follows. -->"
KINDS = ("Data", "Convolution and pooling", "Activations", "Arithmetic and shapes", "Normalization", "Sequences", "Losses",
         "Accuracy and output", "Detection", "Resizing and flow", "Other")
HEAD = """# Layers

Find a layer type: its page says what it computes, what it takes and gives, and where it differs
from each Caffe. `caffe layers TYPE` prints the options in the terminal, [options.md](options.md)
has all of them on one page.

| column | meaning |
|---|---|
| CUDA | "kernels": every op of the layer has a CUDA kernel. All kernels run on emulated grids (`tests/cuda_on_host`); gradients of every layer passed on an H200 ([GPU results](../benchmarks/gpu/README.md)). "host": the processor does the layer's own work |
| goldens | number of cases recorded from BVLC Caffe, forward and backward |
| gradient | "yes": checked against finite differences in double. "none": no backward pass |
| ONNX | "yes": `caffe export` writes it. "input": it becomes inputs of the model. "left out": a model for inference does without. "no": refused ([onnx.md](onnx.md)) |

On the CPU every layer computes in DOUBLE, FLOAT, FLOAT16 and BFLOAT16; [precision.md](precision.md)
says what is float all the same. `scripts/layer_pages.py` makes this page.
"""
NOT_RUN = {"VideoData"}  # a build may have no video reader; tests/python/test_video.py tests it
FEEDERS = {"Input", "DummyData"}  # they feed other layers in the checked nets


def layer_types(caffe):
    """Options of each type: [(field, [option])]."""
    def ask(*arguments):
        return json.loads(subprocess.run([caffe, "layers", *arguments, "--json"], capture_output=True, text=True, check=True).stdout)

    return {layer["type"]: ask(layer["type"])["fields"] for layer in ask()["types"]}


class Support:
    """A type's support, derived from the sources and the tests."""

    def __init__(self):
        self._layers = [path.read_text(encoding="utf-8") for folder in ("src/caffe/layers", "python/src")
                        for path in (ROOT / folder).glob("**/*.cpp")]
        self._onnx = [path.read_text(encoding="utf-8") for path in (ROOT / "python/caffe/onnx").glob("**/*.py")]
        self._checked = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests/layers").glob("gradients_of_*_test.cpp"))

    def cuda(self, layer):
        """"no" for a refused type; a layer's source may leave its work to the processor, as data layers do."""
        registration = re.compile(rf'REGISTER_LAYER_CLASS\({layer}\b|ReplaceCreator\("{layer}"')
        sources = [text for text in self._layers if registration.search(text)]
        if len(sources) > 1:
            sys.exit(f"{layer}: {len(sources)} sources register it")
        if not sources:
            return "no"
        return "host" if "HostCall" in sources[0] or "public BatchDataLayer" in sources[0] else "kernels"

    def gradient(self, layer):
        is_checked = layer not in FEEDERS and re.search(rf"""['"]{layer}['"]""", self._checked)
        return "yes" if is_checked else "none"

    def onnx(self, layer):
        """How caffe export handles the type."""
        def is_named(pattern):
            return any(f'"{layer}"' in found for text in self._onnx for found in re.findall(pattern, text, re.DOTALL))

        for answer, pattern in {"input": r"^SOURCES = \{.*?\}", "yes": r"(?:^@writes\(.*?\)$|^_CONSTANT = .*?$|for _type, _kind in .*?:$)",
                                "left out": r"^left_out\(.*?\)$"}.items():
            if is_named(f"(?m){pattern}"):
                return answer
        return "no"

    def row(self, layer):
        goldens = sum(1 for folder in ("layers", "data") for _ in (ROOT / "tests/golden" / folder).glob(f"{layer}-*.npz"))
        return [self.cuda(layer), str(goldens or "-"), self.gradient(layer), self.onnx(layer)]


class Page:
    """The handwritten half of a page."""

    def __init__(self, layer):
        self.path = PAGES / f"{layer}.md"
        text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        self.text = text.split(MARK)[0].rstrip()
        kind, summary = re.search(r"<!-- kind: (.*?) -->", self.text), re.search(rf"^# {layer}\n\n(.*?)(?:\n\n|\Z)", self.text, re.M | re.S)
        example = re.search(r"^## Example\n.*?```prototxt\n(.*?)^```$", self.text, re.M | re.S)
        missing = [name for name, found in (("'<!-- kind: ... -->'", kind and kind[1] in KINDS), (f"'# {layer}' and a sentence", summary),
                                            ("'## Bottoms and tops'", "\n## Bottoms and tops\n" in self.text),
                                            ("'## Example' with a prototxt block", example)) if not found]
        if missing:
            raise ValueError(f"{self.path.relative_to(ROOT)}: no {', no '.join(missing)}")
        self.kind, self.example = kind[1], example[1]
        self.summary = re.match(r".*?(?<! al)[.](?=\s|$)", " ".join(summary[1].split()))[0]


def shapes(layer, example):
    """Table rows: the blobs of the example and their shapes, including parameters."""
    rows = ["| blob of the example | shape |", "|---|---|"]
    return rows + [f"| {name} | {' x '.join(map(str, shape)) or 'one number'} |" for name, shape in layer_examples.run(layer, example)]


def options(fields):
    for field in fields:
        yield from ["", f"`{field['field']}`", "", "| option | type | default | |", "|---|---|---|---|"]
        for one in field["options"]:
            yield "| " + " | ".join([f"`{one['name']}`", one["type"].replace("|", "\\|"), one["default"].replace("|", "\\|"),
                                     one["description"].replace("|", "\\|")]) + " |"


def generated(layer, fields, row, page):
    lines = [MARK, *(["", "## Shapes", "", *shapes(layer, page.example)] if row[0] != "no" and layer not in NOT_RUN else [])]
    if fields:
        lines += ["", "## Options", *options(fields)]
    lines += ["", "## Support", "", "| CUDA | goldens | gradient | ONNX |", "|---|---|---|---|", "| " + " | ".join(row) + " |", "",
              "[What the columns mean](../layers.md)."]
    return page.text + "\n\n" + "\n".join(lines) + "\n"


def listing(pages, rows):
    text = HEAD
    for kind in KINDS:
        layers = [layer for layer, page in pages.items() if page.kind == kind]
        if layers:
            text += f"\n## {kind}\n\n| type | | CUDA | goldens | gradient | ONNX |\n|---|---|---|---|---|---|\n"
        for layer in layers:
            summary = re.sub(r"\]\((\w+\.md)\)", r"](layers/\1)", pages[layer].summary)
            text += f"| [{layer}](layers/{layer}.md) | {summary} | {' | '.join(rows[layer])} |\n"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("types", nargs="*", metavar="TYPE", help="only these pages, and not the list")
    parser.add_argument("--caffe", default=str(ROOT / "build/cpu-release/bin/caffe"))
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    sys.path.insert(0, str(pathlib.Path(arguments.caffe).resolve().parents[1] / "python"))
    fields, support = layer_types(arguments.caffe), Support()
    faults, pages, texts = [], {}, {}
    rows = {layer: support.row(layer) for layer in fields}
    unknown = [layer for layer in arguments.types if layer not in fields]
    if unknown:
        parser.error(f"{unknown[0]} is not a layer type")
    with layer_examples.folder():
        for layer in arguments.types or fields:
            try:
                pages[layer] = Page(layer)
                texts[pages[layer].path] = generated(layer, fields[layer], rows[layer], pages[layer])
            except ValueError as error:
                faults.append(str(error))
    faults += [f"docs/layers/{path.name}: there is no such type" for path in PAGES.glob("*.md") if path.stem not in fields]
    if not arguments.types and not faults:
        texts[LIST] = listing(pages, rows)
    for path, text in texts.items():
        if not arguments.check:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            faults.append(f"{path.relative_to(ROOT)} is out of date; run scripts/layer_pages.py")
    if faults:
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
