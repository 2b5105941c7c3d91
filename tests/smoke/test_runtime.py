"""caffe compile and the runtime library: the same numbers here, without oneDNN and on another processor."""
import fcntl
import os
import pathlib
import re
import shutil
import subprocess

import numpy as np
import pytest
from programs import BINARIES, ROOT

import caffe

BUILD = BINARIES.parent
NETS = ["cifar10_resnet20", "squeezenet", "mobilenet_v2"]


def run(*command, **options):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, check=False,
                            **options)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def build(folder, *options):
    """Builds the runtime library as a separate project, without oneDNN. Does not use the page's folders, where another generator
    may have built it. Test processes that need the same folder come one after the other."""
    environment = {**os.environ, "NINJA_STATUS": ""}
    with open(f"{folder}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run("cmake", "-S", ROOT / "src/cortado", "-B", folder, "-G", "Ninja", "-DCORTADO_ONEDNN=OFF", *options, env=environment)
        run("cmake", "--build", folder, "--parallel", "2", env=environment)
    return folder


@pytest.fixture(scope="module")
def portable():
    return build(BUILD.parent / "runtime-portable")


@pytest.fixture(scope="module")
def arm():
    missing = [program for program in ("aarch64-linux-gnu-g++", "qemu-aarch64") if shutil.which(program) is None]
    if missing:
        pytest.skip(f"no {' and '.join(missing)}: scripts/install_dependencies.sh test")
    return build(BUILD.parent / "runtime-portable-aarch64", f"--toolchain={ROOT / 'cmake/aarch64.cmake'}")


@pytest.mark.parametrize("line", re.findall(r"^cmake -S .*$", (ROOT / "docs/runtime.md").read_text(), re.MULTILINE))
def test_the_pages_commands_configure(line, tmp_path):
    if "aarch64" in line and shutil.which("aarch64-linux-gnu-g++") is None:
        pytest.skip("no aarch64-linux-gnu-g++: scripts/install_dependencies.sh test")
    run("bash", "-c", line.replace("-B build/", f"-B {tmp_path}/"), cwd=ROOT)


def fill_statistics(net):
    """Gives normalisations in random nets realistic statistics."""
    random = np.random.default_rng(2)
    for layer in net.layers:
        if layer.type == "BatchNorm":
            layer.blobs[0].data[...] = random.normal(0, 0.1, layer.blobs[0].data.shape)
            layer.blobs[1].data[...] = random.uniform(0.5, 2, layer.blobs[1].data.shape)
            layer.blobs[2].data[...] = 1


@pytest.fixture(scope="module", params=NETS)
def compiled(request, tmp_path_factory):
    """A program, its input's file, and the net's results."""
    folder = tmp_path_factory.mktemp(request.param)
    caffe.set_random_seed(1)
    model = ROOT / "models" / request.param / "deploy.prototxt"
    net = caffe.Net(str(model), caffe.TEST)
    fill_statistics(net)
    net.save(str(folder / "net.caffemodel"))
    name = net.inputs[0]
    image = np.random.default_rng(1).normal(0, 1, net.blobs[name].data.shape).astype(np.float32)
    net.blobs[name].data[...] = image
    image.tofile(folder / "input.raw")
    outputs = {blob: values.copy() for blob, values in net.forward().items()}
    net.save_program(folder / "python.cortado")
    run(BINARIES / "caffe", "compile", model, f"--weights={folder / 'net.caffemodel'}",
        f"--output={folder / 'net.cortado'}")
    return folder, outputs


def outputs_of(*command):
    lines = run(*command).splitlines()
    outputs = {}
    while lines:
        name, *shape = lines[0].split()
        count = int(np.prod([int(extent) for extent in shape]))
        outputs[name] = np.array(lines[1:count + 1], float).reshape([int(extent) for extent in shape])
        lines = lines[count + 1:]
    return outputs


def largest_difference(found, wanted):
    assert set(found) == set(wanted)
    return max(np.abs(found[name] - wanted[name]).max() / np.abs(wanted[name]).max() for name in wanted)


def test_python_writes_the_same_file(compiled):
    folder, _ = compiled
    assert (folder / "python.cortado").read_bytes() == (folder / "net.cortado").read_bytes()


def test_the_builds_own_library_computes_the_same(compiled):
    folder, wanted = compiled
    found = outputs_of(BINARIES / "cortado_run", folder / "net.cortado", folder / "input.raw")
    assert largest_difference(found, wanted) < 1e-6


def test_portable_kernels_compute_the_same(portable, compiled):
    folder, wanted = compiled
    found = outputs_of(portable / "cortado_run", folder / "net.cortado", folder / "input.raw")
    assert largest_difference(found, wanted) < 1e-5


def test_another_processor_computes_the_same(arm, compiled):
    folder, wanted = compiled
    if "cifar10" not in str(folder) and not os.environ.get("CAFFE_SLOW_TESTS"):
        pytest.skip("slow: runs with CAFFE_SLOW_TESTS=1 (scripts/test.sh --all)")
    found = outputs_of("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", arm / "cortado_run", folder / "net.cortado",
                       folder / "input.raw")
    assert largest_difference(found, wanted) < 1e-5


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16", "fp64"])
def test_outputs_of_all_types_are_printed(precision, tmp_path):
    """A net that ends with a convolution has an output in its own type."""
    model, weights, program = tmp_path / "net.prototxt", tmp_path / "net.caffemodel", tmp_path / "net.cortado"
    model.write_text("""
        layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 2 dim: 3 dim: 5 } } }
        layer { name: "y" type: "Convolution" bottom: "x" top: "y" convolution_param { num_output: 4 kernel_size: 1
                weight_filler { type: "msra" } bias_filler { type: "uniform" min: -1 max: 1 } } }""")
    caffe.set_random_seed(1)
    net = caffe.Net(str(model), caffe.TEST)
    net.save(str(weights))
    net.blobs["x"].data[...] = 0
    wanted = {"y": net.forward()["y"].copy()}
    run(BINARIES / "caffe", "compile", model, f"--weights={weights}", f"--output={program}", f"--precision={precision}")
    assert largest_difference(outputs_of(BINARIES / "cortado_run", program), wanted) < 0.01


def net_of_a_layer(folder, layer, *shapes, before=""):
    """A net of phase TEST with random inputs x0, x1, ..., whose numbers are in files of these names."""
    inputs = "".join(f"layer {{ name: 'x{k}' type: 'Input' top: 'x{k}' input_param {{ shape {{ {' '.join(f'dim: {extent}' for extent in shape)} }} }} }} "
                     for k, shape in enumerate(shapes))
    (folder / "net.prototxt").write_text(f"{inputs} {before} layer {{ name: 'l' top: 'y' {layer} }}")
    net, random = caffe.Net(str(folder / "net.prototxt"), caffe.TEST), np.random.default_rng(1)
    for blob in net.params["l"] if "l" in net.params else ():
        blob.data[...] = random.normal(0, 0.5, blob.shape)
    for k, shape in enumerate(shapes):
        net.blobs[f"x{k}"].data[...] = random.normal(0, 1, shape) if k == 0 else random.integers(0, 2, shape)
        net.blobs[f"x{k}"].data.tofile(folder / f"x{k}")
    return net


@pytest.mark.parametrize("layer, shapes", [
    ("type: 'LSTM' bottom: 'x0' bottom: 'x1' recurrent_param { num_output: 4 num_layers: 2 bidirectional: true }", [(5, 2, 3), (5, 2)]),
    ("type: 'LSTM' bottom: 'x0' bottom: 'x1' recurrent_param { num_output: 4 projection_size: 2 bidirectional: true }", [(5, 2, 3), (5, 2)]),
    ("type: 'GRU' bottom: 'x0' recurrent_param { num_output: 4 bidirectional: true }", [(5, 2, 3)]),
    ("type: 'RNN' bottom: 'x0' bottom: 'x1' recurrent_param { num_output: 4 }", [(5, 2, 3), (5, 2)]),
    ("type: 'GroupNorm' bottom: 'x0' group_norm_param { num_groups: 2 }", [(2, 4, 5, 3)]),
    ("type: 'Expression' bottom: 'x0' expression_param { expr: 'x * sigmoid(1.702 * x) - mean(x, axis=1) ^ 2' }", [(2, 4, 5)]),
    ("type: 'Expression' bottom: 'x0' bottom: 'x1' expression_param { expr: 'tanh(x) * y + max(x)' }", [(2, 4, 5), (4, 1)]),
    ("type: 'InstanceNorm' bottom: 'x0'", [(2, 4, 5, 3)]),
    ("type: 'PixelShuffle' bottom: 'x0'", [(2, 8, 2, 3)]),
    ("type: 'Binary' bottom: 'x0' bottom: 'x1' binary_param { operation: MAXIMUM }", [(2, 4, 1), (3,)]),
    ("type: 'Where' bottom: 'x1' bottom: 'x0' bottom: 'x2'", [(2, 4, 1), (3,), (4, 3)]),
    ("type: 'Gather' bottom: 'x0' bottom: 'x1' gather_param { axis: 1 }", [(2, 4, 3), (5,)]),
    ("type: 'Scatter' bottom: 'x0' bottom: 'x1' bottom: 'x2' scatter_param { axis: 1 add: true }", [(2, 4), (2, 3), (2, 3)]),
    ("type: 'Cast' bottom: 'x0' cast_param { type: BF16 }", [(2, 4)]),
    ("type: 'TopK' bottom: 'x0' top_k_param { k: 3 axis: 1 }", [(2, 5, 3)]),
    ("type: 'MatMul' bottom: 'x0' bottom: 'x0' matmul_param { transpose_b: true }", [(2, 3, 4)]),
    ("type: 'PatchEmbed' bottom: 'x0' patch_embed_param { num_output: 5 patch_size: 2 }", [(2, 3, 4, 6)]),
])
def test_layers_of_sequences_and_images(layer, shapes, tmp_path):
    net = net_of_a_layer(tmp_path, layer, *shapes)
    wanted = {"y": net.forward()["y"].copy()}
    net.save_program(str(tmp_path / "net.cortado"))
    found = outputs_of(BINARIES / "cortado_run", tmp_path / "net.cortado", *(tmp_path / f"x{k}" for k in range(len(shapes))))
    assert largest_difference(found, wanted) < 1e-6


def test_attention_is_refused_by_name(tmp_path):
    net = net_of_a_layer(tmp_path, "type: 'MultiHeadAttention' bottom: 'x0' attention_param { num_heads: 2 }", (2, 5, 8))
    with pytest.raises(caffe.Error, match=r"layer 'l' \(MultiHeadAttention\) runs Attention, which compiled programs do not have"):
        net.save_program(str(tmp_path / "net.cortado"))


def test_constants_are_part_of_the_program(tmp_path):
    net = net_of_a_layer(tmp_path, """type: 'LSTM' bottom: 'x0' bottom: 'cont' recurrent_param { num_output: 4 } } layer { name: 'after' type: 'Bias'
                         bottom: 'y' bottom: 'five' top: 'z' bias_param { axis: 0 }""", (3, 2, 3), before="""layer { name: 'c' type: 'DummyData'
                         top: 'cont' top: 'five' dummy_data_param { shape { dim: 3 dim: 2 } shape { dim: 3 } data_filler { value: 1 }
                         data_filler { value: 5 } } }""")
    wanted = {"z": net.forward()["z"].copy()}
    net.save_program(str(tmp_path / "net.cortado"))
    found = outputs_of(BINARIES / "cortado_run", tmp_path / "net.cortado", tmp_path / "x0")
    assert largest_difference(found, wanted) < 1e-6


def test_places_are_an_output(tmp_path):
    net = net_of_a_layer(tmp_path, "type: 'TopK' top: 'places' bottom: 'x0' top_k_param { k: 2 largest: false }", (3, 5))
    wanted = {name: blob.copy() for name, blob in net.forward().items()}
    assert set(wanted) == {"y", "places"}
    net.save_program(str(tmp_path / "net.cortado"))
    found = outputs_of(BINARIES / "cortado_run", tmp_path / "net.cortado", tmp_path / "x0")
    assert largest_difference(found, wanted) < 1e-6


def test_a_second_result_that_programs_do_not_have_is_refused(tmp_path):
    net = net_of_a_layer(tmp_path, "type: 'Pooling' top: 'mask' bottom: 'x0' pooling_param { kernel_size: 2 stride: 2 }", (1, 2, 4, 4))
    with pytest.raises(caffe.Error, match=r"layer 'l' \(Pooling\) runs MaxPool as no compiled program can: it has a result 1"):
        net.save_program(str(tmp_path / "net.cortado"))


def test_the_library_is_small_and_needs_little(portable, arm):
    for folder in (portable, arm):
        library = (folder / "libcortado_runtime.so").resolve()
        assert library.stat().st_size < 3 << 20, library
        needed = [line.split("[")[1].rstrip("]") for line in run("readelf", "-d", library).splitlines()
                  if "(NEEDED)" in line]
        assert {name.split(".")[0] for name in needed} <= {
            "libstdc++", "libm", "libmvec", "libgcc_s", "libc", "libgomp", "ld-linux-aarch64", "ld-linux-x86-64"}, needed
        symbols = [line.split()[-1] for line in run("nm", "-D", "--defined-only", library).splitlines()]
        own = sorted(name for name in symbols if "caffe" in name or name.startswith("cortado_"))
        assert own == sorted(f"cortado_{name}" for name in (
            "close", "error", "input", "open", "open_bytes", "output", "run", "set_threads", "share", "version"))


def test_the_library_has_no_kernels_that_programs_do_not_need(portable):
    """ops/forms names the ops of programs; each kernel's type has the name of its op."""
    library = (portable / "libcortado_runtime.so").read_bytes()
    forms = "".join(file.read_text() for file in (ROOT / "src/caffe/ops/forms").glob("*.cpp"))
    served = set(re.findall(rb"KernelRegistrarIN\w*?3ops\d+([A-Za-z]\w*?)EE", library))
    assert b"Relu" in served
    assert served <= {name.encode() for name in re.findall(r"CAFFE_REGISTER_OP_FORM\((\w+)\)", forms)}


def test_what_is_wrong_is_said(portable, compiled, tmp_path):
    folder, _ = compiled
    program = pathlib.Path(folder / "net.cortado").read_bytes()
    short, model = tmp_path / "short.cortado", ROOT / "models/squeezenet/deploy.prototxt"
    short.write_bytes(program[:-64])
    for path, text in ((short, "it is damaged"), (model, "it is not a compiled program"),
                       (tmp_path / "none", "cannot open: No such file")):
        result = subprocess.run([portable / "cortado_run", path], capture_output=True, text=True, check=False)
        assert result.returncode == 1 and result.stderr.startswith(f"cortado_run: {path}: {text}"), result.stderr
    result = subprocess.run([BINARIES / "caffe", "compile", model], capture_output=True, text=True, check=False)
    assert result.returncode == 1 and "--output is missing" in result.stderr
    result = subprocess.run([BINARIES / "caffe", "compile", model, f"--output={short}"], capture_output=True, text=True,
                            check=False)
    assert result.returncode == 1 and "give the .caffemodel with the net's weights" in result.stderr
