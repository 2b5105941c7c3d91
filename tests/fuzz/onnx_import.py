#!/usr/bin/env python3
"""Reads modified ONNX models with caffe.onnx.import_model(): modified bytes and structure, in one process.

    onnx_import.py [--calls N] [--seconds N] [--seed N] [--found DIR]

An error of the package caffe is a valid result, and so is a net. Findings are: a crash, an end of the process, a call of more
than 10 s (40 s if it only waits), memory beyond a limit, another exception, and numbers from a file outside the model's folder.
Then the last calls are printed and stored in DIR, with the last model, and --seed and --calls repeat them. Needs the packages
onnx and onnxruntime.
"""
import collections
import contextlib
import faulthandler
import os
import pathlib
import random
import resource
import signal
import sys
import time

import python_api

MOST_BYTES = 12 << 30  # address space; libraries take some
SECRET = 12345.671875  # the number in a file that no model may read
NETS = {
    "classifier": ("(2, 3, 8, 8)", """
        layer { name: 'c' type: 'Convolution' bottom: 'x0' top: 'c' convolution_param { num_output: 4 kernel_size: 3 pad: 1 } }
        layer { name: 'b' type: 'BatchNorm' bottom: 'c' top: 'c' } layer { name: 's' type: 'Scale' bottom: 'c' top: 'c' }
        layer { name: 'r' type: 'ReLU' bottom: 'c' top: 'c' }
        layer { name: 'p' type: 'Pooling' bottom: 'c' top: 'p' pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 } }
        layer { name: 'f' type: 'InnerProduct' bottom: 'p' top: 'f' inner_product_param { num_output: 5 } }
        layer { name: 'o' type: 'Softmax' bottom: 'f' top: 'o' }"""),
    "shapes": ("(2, 6, 4, 4)", """
        layer { name: 's' type: 'Slice' bottom: 'x0' top: 'a' top: 'b' slice_param { slice_point: 2 } }
        layer { name: 'p' type: 'Permute' bottom: 'a' top: 'p' permute_param { order: 0 order: 2 order: 3 order: 1 } }
        layer { name: 'f' type: 'Flatten' bottom: 'b' top: 'f' } layer { name: 'g' type: 'Flatten' bottom: 'p' top: 'g' }
        layer { name: 'c' type: 'Concat' bottom: 'f' bottom: 'g' top: 'c' }
        layer { name: 't' type: 'Tile' bottom: 'c' top: 't' tile_param { axis: 1 tiles: 2 } }
        layer { name: 'v' type: 'Reverse' bottom: 't' top: 'v' reverse_param { axis: 1 } }"""),
    "images": ("(1, 4, 6, 6)", """
        layer { name: 'd' type: 'Deconvolution' bottom: 'x0' top: 'd' convolution_param { num_output: 2 kernel_size: 2 stride: 2 } }
        layer { name: 'm' type: 'Pooling' bottom: 'd' top: 'm' pooling_param { kernel_size: 3 stride: 2 } }
        layer { name: 'u' type: 'Upsample' bottom: 'm' top: 'u' upsample_param { scale: 2 } }
        layer { name: 'i' type: 'Interp' bottom: 'u' top: 'i' interp_param { height: 5 width: 7 } }
        layer { name: 'l' type: 'LRN' bottom: 'i' top: 'l' } layer { name: 'n' type: 'MVN' bottom: 'l' top: 'n' }"""),
    "activations": ("(2, 5)", " ".join(f"layer {{ name: 'l{k}' type: '{kind}' bottom: 'x{k}' top: 'x{k + 1}' }}"
                                       for k, kind in enumerate(["ReLU6", "HardSwish", "HardSigmoid", "Mish", "GELU", "SiLU", "ELU",
                                                                 "PReLU", "AbsVal", "Power", "Exp", "BNLL", "TanH", "LayerNorm"]))),
}


def seeds():
    """Models of small nets, at several versions of the operators."""
    import caffe
    import caffe.onnx
    made = {}
    for name, (shape, layers) in NETS.items():
        dims = " ".join(f"dim: {extent}" for extent in shape.strip("()").split(", "))
        data = f"layer {{ name: 'x0' type: 'Input' top: 'x0' input_param {{ shape {{ {dims} }} }} }}"
        pathlib.Path("net.prototxt").write_text(data + layers, encoding="utf-8")
        for opset in (11, 13, 17, 20):
            made[f"{name} {opset}"] = caffe.onnx.export(caffe.Net("net.prototxt", caffe.TEST), opset=opset, check=False).model
    return made


class Changes:
    """Draws modifications of a model."""

    def __init__(self, draw):
        import onnx
        self.draw, self.onnx = draw, onnx
        self.numbers = [0, 1, -1, 2, 3, 7, 255, 1 << 16, 1 << 31, -(1 << 31), (1 << 63) - 1, -(1 << 63), 1 << 40, 100000]
        self.operators = sorted({schema.name for schema in onnx.defs.get_all_schemas()})
        self.locations = ["../secret", "/etc/passwd", "link", "folder", "", "\0", ".", "secret/../../secret", "weights.bin", "absent",
                          os.path.abspath("../secret"), "folder/../../secret", "fifo"]

    def one(self, model):
        graph = model.graph
        change = self.draw.choice([self.attribute, self.edge, self.operator, self.drop, self.double, self.weight, self.numbers_of,
                                   self.extent, self.external, self.version, self.subgraph, self.kind, self.name])
        return change.__name__ + ": " + str(change(model, graph))

    def node(self, graph):
        return self.draw.choice(graph.node)

    def attribute(self, model, graph):
        node, draw = self.node(graph), self.draw
        if not node.attribute or draw.random() < 0.2:
            node.attribute.append(self.onnx.helper.make_attribute(draw.choice(["axis", "group", "pads", "to", "mode", "strides"]),
                                                                  draw.choice([draw.choice(self.numbers), [1, 2], "x", 0.5])))
            return node.name
        attribute = draw.choice(node.attribute)
        if draw.random() < 0.2:
            node.attribute.remove(attribute)
        elif attribute.ints:
            attribute.ints[draw.randrange(len(attribute.ints))] = draw.choice(self.numbers)
            if draw.random() < 0.2:
                attribute.ints.append(draw.choice(self.numbers))
        elif draw.random() < 0.3:
            attribute.type = draw.randrange(0, 15)
        else:
            attribute.i, attribute.f = draw.choice(self.numbers), draw.choice([0.0, -1.0, 1e38, float("nan"), float("inf")])
        return node.name

    def tensor(self, graph):
        names = [name for node in graph.node for name in (*node.input, *node.output)]
        return self.draw.choice([*names, *(tensor.name for tensor in graph.initializer), "", "nothing"])

    def edge(self, model, graph):
        node = self.node(graph)
        names = self.draw.choice([node.input, node.input, node.output])
        if self.draw.random() < 0.3 or not names:
            names.append(self.tensor(graph))
        else:
            names[self.draw.randrange(len(names))] = self.tensor(graph)
        return node.name

    def operator(self, model, graph):
        node = self.node(graph)
        others = [other.op_type for other in graph.node]
        node.op_type = self.draw.choice([self.draw.choice(self.operators), self.draw.choice(others), ""])
        return node.op_type

    def drop(self, model, graph):
        things = self.draw.choice([graph.node, graph.initializer, graph.input, graph.output, self.node(graph).input])
        if things:
            del things[self.draw.randrange(len(things))]
        return len(things)

    def double(self, model, graph):
        things = self.draw.choice([graph.node, graph.initializer, graph.input, graph.output])
        if things:
            things.add().CopyFrom(self.draw.choice(things))
        return len(things)

    def weight(self, model, graph):
        draw = self.draw
        if not graph.initializer:
            return "none"
        tensor = draw.choice(graph.initializer)
        way = draw.randrange(4)
        if way == 0 and tensor.dims:
            tensor.dims[draw.randrange(len(tensor.dims))] = draw.choice(self.numbers)
        elif way == 1:
            tensor.raw_data = tensor.raw_data[:draw.randrange(len(tensor.raw_data) + 1)]
        elif way == 2:
            tensor.data_type = draw.randrange(0, 24)
        else:
            tensor.dims.append(draw.choice(self.numbers))
        return tensor.name

    def numbers_of(self, model, graph):
        """Modifies numbers that are weights: shapes, axes and sizes."""
        import numpy as np
        whole = [tensor for tensor in graph.initializer if tensor.data_type == self.onnx.TensorProto.INT64]
        if not whole:
            return "none"
        tensor = self.draw.choice(whole)
        count = self.draw.choice([len(tensor.raw_data) // 8, self.draw.randrange(6)])
        tensor.raw_data = np.array([self.draw.choice(self.numbers) for _ in range(count)], np.int64).tobytes()
        if self.draw.random() < 0.5:
            tensor.dims[:] = [count]
        return tensor.name

    def extent(self, model, graph):
        value = self.draw.choice([*graph.input, *graph.output])
        dims = value.type.tensor_type.shape.dim
        if not dims or self.draw.random() < 0.2:
            dims.add().dim_value = self.draw.choice(self.numbers)
        elif self.draw.random() < 0.3:
            self.draw.choice(dims).dim_param = "N"
        else:
            self.draw.choice(dims).dim_value = self.draw.choice(self.numbers)
        return value.name

    def external(self, model, graph):
        if not graph.initializer:
            return "none"
        tensor = self.draw.choice(graph.initializer)
        tensor.data_location = self.onnx.TensorProto.EXTERNAL
        if self.draw.random() < 0.8:
            tensor.ClearField("raw_data")
        for key, values in {"location": self.locations, "offset": self.numbers, "length": self.numbers, "checksum": ["x"]}.items():
            if key == "location" or self.draw.random() < 0.3:
                tensor.external_data.add(key=key, value=str(self.draw.choice(values)))
        return [entry.value for entry in tensor.external_data]

    def version(self, model, graph):
        if self.draw.random() < 0.3:
            model.ir_version = self.draw.choice(self.numbers)
        elif model.opset_import:
            self.draw.choice(model.opset_import).version = self.draw.choice([*self.numbers, 5, 9, 13, 22])
        return model.ir_version

    def subgraph(self, model, graph):
        inner = self.onnx.GraphProto()
        inner.CopyFrom(graph)
        node = self.onnx.helper.make_node(self.draw.choice(["If", "Loop", "Scan", "Relu"]), [self.tensor(graph)], ["inner"])
        name = self.draw.choice(["then_branch", "body", "else_branch"])
        node.attribute.add(name=name, type=self.onnx.AttributeProto.GRAPH).g.CopyFrom(inner)
        graph.node.insert(self.draw.randrange(len(graph.node) + 1), node)
        return name

    def kind(self, model, graph):
        value = self.draw.choice([*graph.input, *graph.output])
        if self.draw.random() < 0.5:
            value.type.tensor_type.elem_type = self.draw.randrange(0, 24)
        else:
            value.type.sequence_type.elem_type.tensor_type.elem_type = 1
        return value.name

    def name(self, model, graph):
        node = self.node(graph)
        node.name = self.draw.choice(["", "x0", "a/b", "é\n", "n" * 3000])
        if self.draw.random() < 0.3:
            node.domain = self.draw.choice(["com.microsoft", "x"])
        return node.name[:20]

    def bytes_of(self, data):
        """Modifies bytes."""
        draw, data = self.draw, bytearray(data)
        for _ in range(draw.randrange(1, 6)):
            at = draw.randrange(len(data) + 1)
            way = draw.randrange(4)
            if way == 0 and at < len(data):
                data[at] = draw.randrange(256)
            elif way == 1:
                del data[at:at + draw.randrange(1, 64)]
            elif way == 2:
                data[at:at] = draw.randbytes(draw.randrange(1, 16))
            else:
                data[at:at] = data[draw.randrange(len(data) + 1):][:draw.randrange(1, 256)]
        return bytes(data)


def make_files():
    """Files that models may try to read: a file outside their folder, several ways to it, and weights next to the models."""
    import numpy as np
    pathlib.Path("secret").write_bytes(np.full(4096, SECRET, np.float32).tobytes())
    pathlib.Path("models/folder").mkdir(parents=True)
    os.chdir("models")
    pathlib.Path("weights.bin").write_bytes(bytes(4096))
    os.symlink("../secret", "link")
    os.mkfifo("fifo")


def one(draw, changes, models, tell):
    """Imports a modified model. Returns whether it became a net, or a text that says what is wrong."""
    import caffe
    import caffe.onnx
    import numpy as np
    name = draw.choice(sorted(models))
    model = type(models[name])()
    model.CopyFrom(models[name])
    if draw.random() < 0.25:
        data, done = changes.bytes_of(model.SerializeToString()), ["bytes"]
    else:
        done = [changes.one(model) for _ in range(draw.choice([1, 1, 1, 2, 3]))]
        data = model.SerializeToString()
    pathlib.Path("model.onnx").write_bytes(data)
    tell(f"{name}: {'; '.join(done)}"[:1000])
    try:
        net = caffe.onnx.import_model("model.onnx", tolerance=np.inf).net
    except caffe.InternalError as error:
        return f"InternalError: {error}"
    except caffe.Error as error:
        return type(error)
    for blobs in net.params.values():
        if any(np.any(blob.data == SECRET) for blob in blobs):
            return "read a file outside of the model's folder"
    return None


def work(options, output):
    faulthandler.enable(file=sys.stdout)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def tell(text):
        output.write(text.replace("\n", " ") + "\n")
        output.flush()

    tell("makes its files")
    import caffe.onnx.sandbox as sandbox
    sandbox.SECONDS = 20
    models = seeds()
    make_files()
    draw = random.Random(options.seed)
    changes, outcomes, stops, calls = Changes(draw), collections.Counter(), [], 0
    signal.signal(signal.SIGTERM, lambda number, _: stops.append(number))
    end = time.monotonic() + options.seconds if options.seconds else float("inf")
    while calls < options.calls and time.monotonic() < end and not stops:
        calls += 1
        with contextlib.redirect_stdout(None), contextlib.redirect_stderr(None):
            try:
                if options.plant and calls == 20:
                    raise KeyError("planted")
                found = one(draw, changes, models, tell)
            except Exception as error:  # pylint: disable=broad-exception-caught
                found = f"{type(error).__name__}: {error}"
        outcomes["nets" if found is None else found.__name__ if isinstance(found, type) else "finding"] += 1
        if isinstance(found, str):
            tell(found)
            if options.found:
                options.found.mkdir(parents=True, exist_ok=True)
                (options.found / "model.onnx").write_bytes(pathlib.Path("model.onnx").read_bytes())
            os._exit(python_api.FOUND)  # pylint: disable=protected-access
    sandbox.end_workers()
    print(f"onnx_import: {calls} calls, seed {options.seed}: "
          + ", ".join(f"{count} {name}" for name, count in outcomes.most_common()), flush=True)
    tell("end")
    os._exit(0)  # pylint: disable=protected-access


def main():
    options = python_api.parse(__doc__, ["exception"])
    if options.worker is not None:
        work(options, python_api.told(options))
    return python_api.supervise(options, __file__)


if __name__ == "__main__":
    sys.exit(main())
