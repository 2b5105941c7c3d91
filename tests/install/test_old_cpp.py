"""Caffe's C++ API: programs and layers written for it build with an installed tree, and give the same numbers as ours."""
import json
import pathlib
import re
import shutil
import sys

import numpy as np
import pytest

from old_cpp import ROOT, SOURCES, OldTree, caffe_of, run, run_with_layers

LAYERS = ("soft_sign", "log_cosh_loss", "channel_gain", "hard_clamp", "polynomial", "coin_mask", "tempered_loss", "plain_convolution",
          "ramp_data", "faulty")

IMAGE_NET = """
name: "small"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 dim: 6 dim: 8 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "gaussian" std: 0.005 } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "fc" type: "InnerProduct" bottom: "conv" top: "fc" inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "prob" type: "Softmax" bottom: "fc" top: "prob" }
"""

DATA = """
name: "trained"
layer { name: "data" type: "DummyData" top: "data" top: "target"
  dummy_data_param { shape { dim: 8 dim: 4 dim: 3 dim: 3 } shape { dim: 8 dim: 5 }
    data_filler { type: "gaussian" std: 1 } data_filler { type: "constant" value: 0.7 } } }
"""

OLD_LAYERS = """
layer { name: "gain" type: "ChannelGain" bottom: "data" top: "gain" param { lr_mult: 1 } param { lr_mult: 2 } }
layer { name: "clamp" type: "HardClamp" bottom: "gain" top: "gain" }
layer { name: "poly" type: "Polynomial" bottom: "gain" top: "poly" python_param { param_str: "0.1 1 -0.2" } }
layer { name: "sign" type: "SoftSign" bottom: "poly" top: "sign" }
layer { name: "coin" type: "CoinMask" bottom: "sign" top: "coin" }
layer { name: "fc" type: "InnerProduct" bottom: "coin" top: "fc" inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "LogCoshLoss" bottom: "fc" bottom: "target" loss_weight: 2 }
"""

SOLVER = """
net: "{folder}/net.prototxt" base_lr: 0.05 lr_policy: "fixed" momentum: 0.9 max_iter: 20 display: 5 random_seed: 5
snapshot: 10 snapshot_prefix: "{folder}/run" test_iter: 2 test_interval: 10 solver_mode: CPU
"""


@pytest.fixture(scope="session", name="tree")
def tree_for_caffe(tree):
    if not (tree.prefix / "lib" / "libcaffe_compat.so").exists():
        pytest.skip("built without OpenBLAS, so without libcaffe_compat")
    return OldTree(tree.prefix)


@pytest.fixture(scope="session")
def layers(tree):
    return tree.compile_layers(*LAYERS)


@pytest.fixture(name="caffe")
def python_package():
    return pytest.importorskip("caffe._caffe") and __import__("caffe")


def parameters(caffe, net, weights):
    """The parameters of a weights file, in one array."""
    loaded = caffe.Net(str(net), str(weights), caffe.TRAIN)
    return np.concatenate([blob.data.ravel() for name in loaded.params for blob in loaded.params[name]])


def train(layers, folder, net, *options, solver=SOLVER, program=None):
    (folder / "net.prototxt").write_text(net)
    (folder / "solver.prototxt").write_text(solver.format(folder=folder))
    log = run_with_layers(layers, [program or caffe_of(layers), "train", f"--solver={folder}/solver.prototxt", *options])
    return log, [(folder / f"run_iter_20.{ending}").read_bytes() for ending in ("caffemodel", "solverstate")]


@pytest.mark.parametrize("standard", ["c++11", "c++17"])
def test_each_call_of_the_api(tree, tmp_path, standard):
    program = tree.compile(SOURCES / "api_tour.cpp", "-lhdf5_serial", standard=standard)
    assert "The tour has ended." in run([program, tmp_path])


def test_all_headers_compile(tree, tmp_path):
    root = tree.prefix / "include" / "caffe" / "compat"
    headers = sorted(path.relative_to(root) for path in root.rglob("caffe/**/*.h*"))
    assert len(headers) > 90
    (tmp_path / "all.cpp").write_text("".join(f'#include "{header}"\n' for header in headers) + """
void f(caffe::MemoryDataLayer<float>& layer, caffe::DataTransformer<float>& transformer, caffe::Blob<float>* blob) {
  const std::vector<cv::Mat> images(1, caffe::ReadImageToCVMat("x", 2, 2));
  layer.AddMatVector(images, std::vector<int>(1));
  transformer.Transform(images, blob);
}
template class caffe::SoftmaxLayer<float>;
""")
    tree.compile(tmp_path / "all.cpp", "-DUSE_OPENCV", "-fsyntax-only")


def test_classification(tree, caffe, tmp_path):
    program = tree.compile(SOURCES / "classification.cpp", "-lopencv_core", "-lopencv_imgcodecs", "-lopencv_imgproc")
    (tmp_path / "deploy.prototxt").write_text(IMAGE_NET)
    caffe.set_random_seed(1)
    net = caffe.Net(str(tmp_path / "deploy.prototxt"), caffe.TEST)
    net.save(str(tmp_path / "w.caffemodel"))
    image = np.random.default_rng(1).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    (tmp_path / "image.ppm").write_bytes(b"P6 8 6 255\n" + image.tobytes())
    mean = caffe.proto.caffe_pb2.BlobProto(num=1, channels=3, height=1, width=1, data=[104, 117, 123])
    (tmp_path / "mean.binaryproto").write_bytes(mean.SerializeToString())
    (tmp_path / "labels.txt").write_text("".join(f"class {i}\n" for i in range(5)))
    net.blobs["data"].reshape(1, 3, 6, 8)
    net.blobs["data"].data[0] = image[:, :, ::-1].transpose(2, 0, 1) - np.array([104, 117, 123]).reshape(3, 1, 1)
    expected = net.forward()["prob"][0]
    lines = run([program, *(tmp_path / name for name in ("deploy.prototxt", "w.caffemodel", "mean.binaryproto", "labels.txt", "image.ppm"))])
    found = re.findall(r'^(\S+) - "class (\d)"$', lines, re.MULTILINE)
    assert [int(label) for _, label in found] == list(np.argsort(-expected, kind="stable"))
    np.testing.assert_allclose([float(p) for p, _ in found], np.sort(expected)[::-1], rtol=1e-6)


@pytest.fixture(scope="session")
def golden_net(tree):
    return tree.compile(SOURCES / "golden_net.cpp")


@pytest.mark.parametrize("case", ["nets/inception", "nets/inplace_chain", "nets/fan_out3", "layers/Convolution-group2", "layers/InnerProduct-basic"])
def test_numbers_recorded_from_caffe(golden_net, tmp_path, case):
    golden = np.load(ROOT / "tests" / "golden" / f"{case}.npz")
    meta = json.loads(bytes(golden["meta"].item()))
    (tmp_path / "net.prototxt").write_bytes(bytes(golden["prototxt"].item()))
    for key in golden.files:
        if key.startswith(("in.", "param.", "outdiff.")):
            (tmp_path / key).write_bytes(golden[key].astype(np.float32).tobytes())
    run([golden_net, tmp_path, meta["phase"]])
    compared = [key for key in golden.files if key.startswith(("out.", "indiff.", "paramdiff."))]
    assert len(compared) > 1
    for key in compared:
        found = np.frombuffer((tmp_path / key).read_bytes(), np.float32)
        np.testing.assert_allclose(found, golden[key].ravel(), rtol=max(meta["rtol"], 1e-4), atol=max(meta["atol"], 1e-5), err_msg=key)


def test_extract_features(tree, caffe, tmp_path):
    program = tree.compile(SOURCES / "extract_features.cpp")
    text = DATA + OLD_LAYERS[OLD_LAYERS.index('layer { name: "fc"'):OLD_LAYERS.index('layer { name: "loss"')].replace('"coin"', '"data"')
    text = text.replace('type: "gaussian" std: 1', 'type: "constant" value: 0.25')
    (tmp_path / "net.prototxt").write_text(text)
    net = caffe.Net(str(tmp_path / "net.prototxt"), caffe.TEST)
    net.save(str(tmp_path / "w.caffemodel"))
    expected = net.forward()["fc"]
    run([program, tmp_path / "w.caffemodel", tmp_path / "net.prototxt", "fc", tmp_path / "features", "2", "lmdb"])
    (tmp_path / "read.prototxt").write_text(
        f'layer {{ name: "f" type: "Data" top: "f" data_param {{ source: "{tmp_path}/features" batch_size: 16 backend: LMDB }} }}')
    features = caffe.Net(str(tmp_path / "read.prototxt"), caffe.TEST).forward()["f"]
    np.testing.assert_allclose(features.reshape(16, 5), np.concatenate([expected, expected]), rtol=1e-6)


def test_the_old_program_trains_tests_and_times(tree, caffe, tmp_path):
    program = tree.compile(SOURCES / "caffe_tool.cpp")
    net = DATA + ('layer { name: "fc" type: "InnerProduct" bottom: "data" top: "fc" inner_product_param { num_output: 5 '
                  'weight_filler { type: "xavier" } } }\nlayer { name: "loss" type: "EuclideanLoss" bottom: "fc" bottom: "target" top: "loss" }')
    train([], tmp_path, net, program=tree.caffe)
    expected = parameters(caffe, tmp_path / "net.prototxt", tmp_path / "run_iter_20.caffemodel")
    (tmp_path / "run_iter_20.caffemodel").unlink()
    log = run([program, "train", f"--solver={tmp_path}/solver.prototxt"])
    assert "Optimization Done." in log
    found = parameters(caffe, tmp_path / "net.prototxt", tmp_path / "run_iter_20.caffemodel")
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    resumed = run([program, "train", f"--solver={tmp_path}/solver.prototxt", f"--snapshot={tmp_path}/run_iter_10.solverstate"])
    assert "Resuming from" in resumed
    again = parameters(caffe, tmp_path / "net.prototxt", tmp_path / "run_iter_20.caffemodel")
    np.testing.assert_array_equal(again, found)
    scores = run([program, "test", f"--model={tmp_path}/net.prototxt", f"--weights={tmp_path}/run_iter_20.caffemodel", "--iterations=3"])
    assert re.search(r"loss = \S+ \(weight 1\)", scores)
    assert "fc backward:" in run([program, "time", f"--model={tmp_path}/net.prototxt", "--iterations=2"])
    assert "cuda" in run([program, "device_query"], status=-6)  # in a build without GPUs


def test_gradients_of_old_layers(tree, layers):
    program = tree.compile(SOURCES / "gradient_check.cpp", "-lgtest", standard="c++14")
    assert "[  PASSED  ] 28 tests." in run_with_layers(layers, [program])


def test_check_layer_computes_old_layers_in_double(layers, tmp_path):
    """Their gradients are right to more digits than float has."""
    (tmp_path / "net.prototxt").write_text(
        'layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 3 dim: 4 } } } '
        'layer { name: "y" type: "SoftSign" bottom: "x" top: "y" }')
    said = run_with_layers(layers, [caffe_of(layers), "check-layer", tmp_path / "net.prototxt"])
    assert "too large" not in said and float(re.search(r"^x +12 +(\S+)$", said, re.M)[1]) < 1e-7


def test_old_layers_are_trained_and_resumed_to_the_byte(layers, caffe, tmp_path):
    log, whole = train(layers, tmp_path, DATA + OLD_LAYERS)
    losses = [float(loss) for loss in re.findall(r"Iteration \d+ .*, loss = (\S+)", log)]
    assert losses[-1] < losses[0] / 2
    _, repeated = train(layers, tmp_path, DATA + OLD_LAYERS)
    assert repeated == whole
    _, resumed = train(layers, tmp_path, DATA + OLD_LAYERS, f"--snapshot={tmp_path}/run_iter_10.solverstate")
    assert resumed == whole
    gain = caffe.proto.caffe_pb2.NetParameter.FromString(whole[0]).layer[1]
    assert gain.type == "ChannelGain" and [len(blob.data) for blob in gain.blobs] == [4, 4]
    assert all(value != 1 for value in gain.blobs[0].data)


def test_python_has_what_a_plugin_of_old_layers_needs(tree, caffe, tmp_path):
    """An interpreter does not search for libcaffe_compat next to its libcaffe, as in a wheel."""
    tree.run(tree.compiler, "-std=c++11", "-shared", "-fPIC", SOURCES / "layers" / "soft_sign_layer.cpp", "-o", tmp_path / "plugin.so",
             *tree.pkg_config("--cflags", "--libs", "cortado-compat"))
    (tmp_path / "net.prototxt").write_text(
        'layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 } } } layer { name: "y" type: "SoftSign" bottom: "x" top: "y" }')
    script = ("import caffe; caffe.load_plugin('plugin.so'); net = caffe.Net('net.prototxt', caffe.TEST); "
              "net.blobs['x'].data[...] = 3; print(net.forward()['y'])")
    package = pathlib.Path(caffe.__file__).parents[1]
    assert "[0.75]" in run([sys.executable, "-c", f"import os; os.chdir({str(tmp_path)!r}); {script}"], PYTHONPATH=package)


def test_two_workers_repeat_a_run_to_the_byte(layers, tmp_path):
    _, whole = train(layers, tmp_path, DATA + OLD_LAYERS, "--workers=2")
    _, resumed = train(layers, tmp_path, DATA + OLD_LAYERS, "--workers=2", f"--snapshot={tmp_path}/run_iter_10.solverstate")
    assert resumed == whole


def test_old_layers_give_the_numbers_of_ours(layers, caffe, tmp_path):
    rest = OLD_LAYERS[OLD_LAYERS.index('layer { name: "fc"'):OLD_LAYERS.index('layer { name: "loss"')].replace('"coin"', '"gain"')
    loss = 'layer { name: "loss" type: "EuclideanLoss" bottom: "fc" bottom: "target" top: "loss" }'
    pairs = (("ChannelGain", 'type: "ChannelGain"', 'type: "Scale" scale_param { bias_term: true }'),
             ("HardClamp", 'type: "HardClamp"', 'type: "Clip" clip_param { min: -1 max: 1 }'))
    start = OLD_LAYERS[:OLD_LAYERS.index('layer { name: "poly"')]
    for precision in ("", 'default_forward_type: DOUBLE default_backward_type: DOUBLE\n', 'default_forward_type: BFLOAT16\n'):
        found = []
        for replace in (False, True):
            text = precision + DATA + start + rest + loss
            for name, old, ours in pairs:
                # HardClamp's gradient reads a value near 1 that has few bits left.
                if (name == "HardClamp" and "BFLOAT16" in precision) or replace:
                    text = text.replace(old, ours)
            train(layers, tmp_path, text, solver=SOLVER + "test_initialization: false ")
            found.append(np.concatenate([np.array(blob.double_data or blob.data) for layer in caffe.proto.caffe_pb2.NetParameter.FromString(
                (tmp_path / "run_iter_20.caffemodel").read_bytes()).layer for blob in layer.blobs]))
        np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-5)


def test_a_loss_with_a_layer_inside_is_softmax_with_loss(layers, caffe, tmp_path):
    net = DATA.replace("dim: 8 dim: 5 }", "dim: 8 }").replace("value: 0.7", "value: 3") + (
        'layer { name: "fc" type: "InnerProduct" bottom: "data" top: "fc" inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }'
        'layer { name: "loss" type: "TemperedLoss" bottom: "fc" bottom: "target" top: "loss" }')
    found = []
    for text in (net, net.replace("TemperedLoss", "SoftmaxWithLoss")):
        train(layers, tmp_path, text)
        found.append(np.concatenate([np.array(blob.data) for layer in caffe.proto.caffe_pb2.NetParameter.FromString(
            (tmp_path / "run_iter_20.caffemodel").read_bytes()).layer for blob in layer.blobs]))
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-6)


def test_a_prefetching_data_layer(layers, tmp_path):
    (tmp_path / "net.prototxt").write_text(
        'layer { name: "ramp" type: "RampData" top: "data" top: "label" data_param { batch_size: 100 } transform_param { scale: 2 } }\n'
        'layer { name: "mean" type: "Reduction" bottom: "data" top: "mean" reduction_param { operation: MEAN } }\n'
        'layer { name: "mean_label" type: "Reduction" bottom: "label" top: "mean_label" reduction_param { operation: MEAN } }\n')
    command = [caffe_of(layers), "test", tmp_path / "net.prototxt", "--iterations=10"]
    log = run_with_layers(layers, command)
    assert re.search(r"\] mean = 999$", log, re.MULTILINE) and re.search(r"\] mean_label = 499\.5$", log, re.MULTILINE), log
    failed = run_with_layers(layers, [*command[:-1], "--iterations=11"], status=1)
    assert "layer 'ramp' (RampData): in Forward_cpu: in load_batch: the ramp ends at 1000" in failed


@pytest.mark.parametrize("fault, error", [
    ("constructor", "layer 'bad' (Faulty): in the constructor: nothing works"), ("LayerSetUp", "in SetUp: nothing works"),
    ("Reshape", "nothing works"), ("Forward", "layer 'bad' (Faulty): in Forward_cpu: nothing works"),
    ("Backward", "layer 'bad' (Faulty): in Backward_cpu: nothing works"), ("negative shape", "in SetUp: "),
    ("bottom's shape", "only tops may be"), ("null parameter", "blobs_[0] was left null"),
    ("loss weight", "write loss_weight: 2 into the prototxt")])
def test_faults_of_old_layers_are_errors_that_say_where(layers, tmp_path, fault, error):
    text = DATA + OLD_LAYERS[:OLD_LAYERS.index('layer { name: "clamp"')] + f'''
        layer {{ name: "bad" type: "Faulty" bottom: "gain" top: "bad" python_param {{ param_str: "{fault}" }} }}
        layer {{ name: "fc" type: "InnerProduct" bottom: "bad" top: "fc" inner_product_param {{ num_output: 5 }} }}
        layer {{ name: "loss" type: "LogCoshLoss" bottom: "fc" bottom: "target" }}'''
    (tmp_path / "net.prototxt").write_text(text)
    (tmp_path / "solver.prototxt").write_text(SOLVER.format(folder=tmp_path))
    log = run_with_layers(layers, [caffe_of(layers), "train", f"--solver={tmp_path}/solver.prototxt"], status=1)
    assert error in log


def test_a_check_of_an_old_layer_ends_the_process(layers, tmp_path):
    (tmp_path / "net.prototxt").write_text(
        DATA + 'layer { name: "bad" type: "Faulty" bottom: "data" top: "bad" python_param { param_str: "check" } }')
    log = run_with_layers(layers, [caffe_of(layers), "test", tmp_path / "net.prototxt", "--iterations=1"], status=-6)
    assert "Check failed" in log and "a check of the layer" in log


def test_a_top_may_get_its_shape_in_forward(layers, tmp_path):
    (tmp_path / "net.prototxt").write_text(
        DATA + 'layer { name: "long" type: "Faulty" bottom: "data" top: "long" python_param { param_str: "longer" } }'
        'layer { name: "sum" type: "Reduction" bottom: "long" top: "sum" }')
    log = run_with_layers(layers, [caffe_of(layers), "test", tmp_path / "net.prototxt", "--iterations=2"])
    assert re.search(r"\] sum = 1980$", log, re.MULTILINE), log  # 11 x 4 x 3 x 3 fives


def test_a_type_that_is_there_already_cannot_be_registered(tree, layers, tmp_path):
    source = tmp_path / "re_lu_layer.cpp"
    text = (SOURCES / "layers" / "soft_sign_layer.cpp").read_text()
    source.write_text(text.replace("SoftSign", "ReLU"))
    taken = tree.compile(source, "-shared", "-fPIC")
    assert "layer type 'ReLU' is registered twice" in run_with_layers([taken], [caffe_of([taken]), "layers"], status=1)


@pytest.mark.parametrize("source, advice", [
    ('#include "caffe/caffe.hpp"\n#include "caffe/sgd_solvers.hpp"\nnamespace caffe {\n'
     'template <typename Dtype> class MineSolver : public SGDSolver<Dtype> {};\nREGISTER_SOLVER_CLASS(Mine);\n}', "an optimizer cannot be added"),
    ('#include "caffe/caffe.hpp"\nvoid f(caffe::shared_ptr<caffe::Solver<float> > s) { caffe::NCCL<float> n(s); }', "caffe train --gpu 0,1"),
    ('#include "caffe/layers/memory_data_layer.hpp"\nvoid f(caffe::MemoryDataLayer<float>& l) { l.set_batch_size(2); }', "deleted")])
def test_what_cannot_be_had_says_so_when_it_is_compiled(tree, tmp_path, source, advice):
    (tmp_path / "none.cpp").write_text(source)
    with pytest.raises(AssertionError, match=advice):
        tree.compile(tmp_path / "none.cpp", "-fsyntax-only")


@pytest.fixture(scope="session")
def nvcc():
    found = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    return found or pytest.skip("no nvcc (the CUDA toolkit) to compile GPU code with")


def test_gpu_code_compiles(tree, nvcc, tmp_path):
    """Compiled against the headers of a build with CUDA, which differ from those of a build without in one line."""
    shutil.copytree(tree.prefix / "include", tmp_path / "include")
    compat = tmp_path / "include" / "caffe" / "compat"
    options = compat / "caffe" / "util" / "build_options.hpp"
    options.write_text(options.read_text().replace("#define CPU_ONLY", ""))
    sources = [SOURCES / "gpu" / f"gate_layer.{ending}" for ending in ("cpp", "cu")]
    tree.run(nvcc, "-std=c++17", "-arch=sm_90", "-shared", "-Xcompiler=-fPIC", f"-I{compat}", f"-I{tmp_path}/include", *sources,
             "-o", tmp_path / "gate.so", f"-L{tree.prefix}/lib", "-lcaffe_compat", "-lcaffe", "-lcublas", "-lprotobuf", "-lglog", "-lgflags")
    missing = tree.run("bash", "-c", f"nm -D --undefined-only {tmp_path}/gate.so | cut -c20- | sort -u > {tmp_path}/wanted; "
                       f"nm -D --defined-only {tree.prefix}/lib/libcaffe*.so | cut -d' ' -f3 | sort -u > {tmp_path}/there; "
                       f"comm -23 {tmp_path}/wanted {tmp_path}/there | c++filt | grep caffe:: || true")
    assert missing == ""


def test_a_layer_of_gpu_code_runs_without_it(tree, tmp_path):
    """With CPU_ONLY, STUB_GPU replaces the .cu file."""
    layers = [tree.compile(SOURCES / "gpu" / "gate_layer.cpp", "-shared", "-fPIC")]
    (tmp_path / "net.prototxt").write_text(
        'layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 3 dim: 4 } } } '
        'layer { name: "y" type: "Gate" bottom: "x" top: "y" }')
    said = run_with_layers(layers, [caffe_of(layers), "check-layer", tmp_path / "net.prototxt"])
    assert float(re.search(r"^x +12 +(\S+)$", said, re.M)[1]) < 1e-7
