"""The generated nets, and the operation counts that benchmarks divide by."""
import pathlib
import subprocess
import sys

import pytest
from google.protobuf import text_format

from caffe.proto import caffe_pb2

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import net_flops  # noqa: E402
import step_time  # noqa: E402


def read(path):
    return net_flops.parse((ROOT / path).read_text())


def count(net, kind):
    return sum(layer["type"] == [kind] for layer in net["layer"])


def test_committed_nets_are_what_the_generator_writes():
    done = subprocess.run([sys.executable, ROOT / "models" / "generate.py", "--check"],
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_forges_know_which_files_are_generated():
    sys.path.insert(0, str(ROOT / "models"))
    import generate  # pylint: disable=import-outside-toplevel

    generated = {path for path, _ in generate.files()}
    nets = [str(path.relative_to(ROOT)) for folder in ("models", "benchmarks/nets", "examples")
            for path in (ROOT / folder).rglob("*.prototxt")]
    said = subprocess.run(["git", "check-attr", "--stdin", "linguist-generated"], input="\n".join(nets), cwd=ROOT, text=True,
                          check=True, capture_output=True).stdout
    marked = {line.split(": ")[0] for line in said.splitlines() if line.endswith(": set")}
    assert marked == generated & set(nets)


@pytest.mark.parametrize("path, kinds", [
    ("bvlc_alexnet/train_val", {"ReLU": 7, "Convolution": 5, "Pooling": 3, "InnerProduct": 3, "LRN": 2, "Dropout": 2}),
    ("bvlc_googlenet/train_val", {"ReLU": 61, "Convolution": 59, "Pooling": 16, "Concat": 9, "Accuracy": 6,
                                  "InnerProduct": 5, "Dropout": 3, "SoftmaxWithLoss": 3, "LRN": 2}),
    ("resnet50/train_val", {"Convolution": 53, "BatchNorm": 53, "Scale": 53, "ReLU": 49, "Eltwise": 16, "Pooling": 2,
                            "InnerProduct": 1}),
    ("cifar10_nv/train_val", {"Convolution": 9, "ReLU": 9, "Pooling": 3, "BatchNorm": 2, "Accuracy": 1}),
    ("kitti_detectnet/train_val", {"Convolution": 59, "ReLU": 57, "Pooling": 12, "Concat": 12, "Eltwise": 5, "Data": 4,
                                   "Python": 4, "DetectNetTransformation": 2, "LRN": 2, "Slice": 1, "Dropout": 1}),
    ("kitti_detectnet/train_val_2classes", {"Convolution": 59, "Python": 6}),
    ("kitti_detectnet/deploy", {"Input": 1, "Power": 1, "Sigmoid": 1, "Python": 0}),
    ("WIDER_FACE/SFD/train", {"Convolution": 31, "ReLU": 19, "Permute": 12, "Flatten": 12, "PriorBox": 6, "Pooling": 5,
                              "Normalize": 3, "Concat": 3, "AnnotatedData": 1, "MultiBoxLoss": 1}),
    ("WIDER_FACE/SFD/train_orig", {"Convolution": 31, "Concat": 4, "Slice": 1, "Eltwise": 1}),
])
def test_nets_have_the_layers_of_their_papers(path, kinds):
    net = read(f"models/{path}.prototxt")
    assert {kind: count(net, kind) for kind in kinds} == kinds


@pytest.mark.parametrize("folder, last", [("bvlc_alexnet", "conv5"), ("bvlc_googlenet", "inception_5b/output"),
                                          ("resnet50", "res5c")])
def test_deploy_nets_end_in_probabilities(folder, last):
    net = read(f"models/{folder}/deploy.prototxt")
    _, shapes = net_flops.layers_of(net)
    assert net["layer"][-1]["type"] == ["Softmax"]
    assert shapes["prob"] == (1000,)
    assert last in shapes


SOLVERS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "models").rglob("*solver*.prototxt"))


def message(path, kind):
    return text_format.Parse((ROOT / path).read_text(), kind())


@pytest.mark.parametrize("path", SOLVERS)
def test_solvers_name_nets_and_places_of_their_own_folder(path):
    solver = message(path, caffe_pb2.SolverParameter)
    folder = path.rsplit("/", 1)[0] + "/"
    for net in [solver.net or solver.train_net, *solver.test_net]:
        assert net.startswith(folder) and (ROOT / net).exists()
    assert solver.snapshot_prefix.startswith(folder)
    assert not solver.HasField("solver_mode")  # the build decides


def test_snapshots_of_different_recipes_do_not_meet():
    prefixes = [message(path, caffe_pb2.SolverParameter).snapshot_prefix for path in SOLVERS]
    assert len(set(prefixes)) == len(prefixes)


@pytest.mark.parametrize("path", [path for path in SOLVERS if not any(name in path for name in (
    "cifar10", "flickr", "WIDER_FACE"))])
def test_tests_cover_the_validation_set_once(path):
    solver = message(path, caffe_pb2.SolverParameter)
    net = message(solver.net or solver.test_net[0], caffe_pb2.NetParameter)
    batch = next(layer.data_param.batch_size for layer in net.layer if layer.data_param.HasField("batch_size") and
                 (not layer.include or layer.include[0].phase == caffe_pb2.TEST))
    images = 4952 if "VOC" in path else 5000 if "coco" in path else 1110 if "kitti" in path else 50000
    assert 0 <= solver.test_iter[0] * batch - images < batch


@pytest.mark.parametrize("path", sorted(str(path.relative_to(ROOT)) for path in (ROOT / "models").rglob("*_fp16.prototxt")
                                        if "solver" not in path.name))
def test_sixteen_bits_change_no_layer(path):
    half, single = (message(name, caffe_pb2.NetParameter) for name in (path, path.replace("_fp16", "")))
    assert half.default_forward_type == half.default_backward_type == caffe_pb2.FLOAT16
    for net in (half, single):
        for layer in net.layer:
            layer.data_param.ClearField("batch_size")
            for field in ("forward_type", "backward_type"):  # some layers' numbers need more than 16 bits
                layer.ClearField(field)
    assert half.layer == single.layer


# Multiply-adds as the literature counts them: 0.72, 1.6 and 3.8 billion.
@pytest.mark.parametrize("net, millions", [("lenet", 2.293), ("alexnet", 724.4), ("googlenet", 1591.0), ("resnet50", 3858.0)])
def test_operation_counts(net, millions):
    assert net_flops.multiply_adds(read(f"benchmarks/nets/{net}.prototxt")) / 1e6 == pytest.approx(millions, rel=1e-4)


def test_training_counts_three_products_but_no_gradient_of_the_data():
    net = net_flops.parse("""
        layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 4 dim: 3 dim: 8 dim: 8 } } }
        layer { name: "c" type: "Convolution" bottom: "data" top: "c" convolution_param { num_output: 2 kernel_size: 3 } }
        layer { name: "ip" type: "InnerProduct" bottom: "c" top: "ip" inner_product_param { num_output: 5 } }  # comment
    """)
    convolution, product = 2 * 6 * 6 * 3 * 9, 5 * 2 * 6 * 6
    assert net_flops.multiply_adds(net) == convolution + product
    assert net_flops.training_flop(net) == 2 * (2 * convolution + 3 * product)
    assert net_flops.batch_size(net) == 4


def test_step_times_are_read_from_the_log():
    log = ("I1120 10:00:00.000000 1 caffe.cpp:9] Iteration: 1 forward-backward time: 12.5 ms.\n"
           "I1120 10:00:00.000000 1 caffe.cpp:9] Iteration: 2 forward-backward time: 1.25e+02 ms.\n")
    assert step_time.step_times_ms(log) == [12.5, 125]
    with pytest.raises(ValueError, match="no 'forward-backward time' line"):
        step_time.step_times_ms("Aborted")
