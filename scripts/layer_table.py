#!/usr/bin/env python3
"""Writes docs/layers.md: what stands behind each layer type.

  scripts/layer_table.py [--caffe build/cpu-release/bin/caffe] [--check]

The types and their options come from `caffe layers`, goldens and gradient checks from tests/, the notes from the
table that is there. --check changes nothing and fails when the page is out of date.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "layers.md"
HEAD = """# Layers

Find out whether a layer type is supported, on which devices, how it is tested, and where it
differs
from Caffe on purpose. [options.md](options.md) has the fields of each option.

| column | meaning |
|---|---|
| options | messages of the layer's options |
| CUDA | "kernels": every op of the layer has a CUDA kernel. All kernels run on emulated grids (`tests/cuda_on_host`); gradients of every layer passed on an H200 ([GPU results](../benchmarks/gpu/README.md)). "host": the processor does the layer's own work |
| types | "all": DOUBLE, FLOAT, FLOAT16 and BFLOAT16 on the CPU; [precision.md](precision.md) says what is computed in float all the same |
| goldens | number of cases recorded from BVLC Caffe, forward and backward |
| gradient | "yes": checked against finite differences in double. "none": no backward pass |
| ONNX | "yes": `caffe export` writes it. "input": it becomes inputs of the model. "left out": a model for inference does without. "no": refused ([onnx.md](onnx.md)) |

`scripts/layer_table.py` makes this page from `caffe layers`, `tests/golden` and the gradient
checks. The last column is written by hand.

| type | options | CPU | CUDA | types | goldens | gradient | ONNX | deliberate differences, notes |
|---|---|---|---|---|---|---|---|---|
"""


def layer_types(caffe):
    text = subprocess.run([caffe, "layers", "--json"], capture_output=True, text=True, check=True).stdout
    return [(layer["type"], layer["fields"]) for layer in json.loads(text)["types"]]


FEEDERS = {"Input", "DummyData"}  # they stand in the checked nets to feed the others


def goldens(layer):
    return sum(1 for folder in ("layers", "data") for _ in (ROOT / "tests/golden" / folder).glob(f"{layer}-*.npz"))


def notes():
    if not PAGE.exists():
        return {}
    rows = (line.split("|")[1:-1] for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `"))
    return {row[0].strip(" `"): row[-1].strip() for row in rows}


def places(layer):
    """What stands in the columns CPU and CUDA: a layer's source may hand its work to the processor, as data layers do."""
    registration = re.compile(rf'REGISTER_LAYER_CLASS\({layer}\b|ReplaceCreator\("{layer}"')
    sources = [path for folder in ("src/caffe/layers", "python/src") for path in (ROOT / folder).glob("*.cpp")
               if registration.search(path.read_text(encoding="utf-8"))]
    if not sources:  # registered by what refuses it
        return "no", "no"
    if len(sources) > 1:
        sys.exit(f"{layer}: {len(sources)} sources register it")
    text = sources[0].read_text(encoding="utf-8")
    return "yes", "host" if "HostCall" in text or "public BatchDataLayer" in text else "kernels"


def onnx(layer):
    """What caffe export makes of it, as the sources of python/caffe/onnx say."""
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "python/caffe/onnx").glob("**/*.py")]

    def is_named(pattern):
        return any(f'"{layer}"' in found for text in sources for found in re.findall(pattern, text, re.DOTALL))

    for answer, pattern in {"input": r"^SOURCES = \{.*?\}", "yes": r"(?:^@writes\(.*?\)$|^_CONSTANT = .*?$|for _type, _kind in .*?:$)",
                            "left out": r"^left_out\(.*?\)$"}.items():
        if is_named(f"(?m){pattern}"):
            return answer
    return "no"


def page(caffe):
    cases = (ROOT / "tests/layers/gradient_check_test.cpp").read_text(encoding="utf-8").split("TEST(LayersTest")[0]
    kept, text = notes(), HEAD
    for layer, options in layer_types(caffe):
        is_checked = layer not in FEEDERS and re.search(rf"""['"]{layer}['"]""", cases) is not None
        cpu, cuda = places(layer)
        text += (f"| `{layer}` | {', '.join(options)} | {cpu} | {cuda} | {'all' if cpu == 'yes' else '-'} | "
                 f"{goldens(layer) or '-'} | {'yes' if is_checked else 'none'} | {onnx(layer)} | {kept.get(layer, '')} |\n")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--caffe", default=str(ROOT / "build/cpu-release/bin/caffe"))
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    text = page(options.caffe)
    if not options.check:
        PAGE.write_text(text, encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != text:
        sys.exit("docs/layers.md is out of date; run scripts/layer_table.py")


if __name__ == "__main__":
    main()
