"""The generated nets, and the operation counts that benchmarks divide by."""
import pathlib
import subprocess
import sys

import pytest

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


@pytest.mark.parametrize("folder, kinds", [
    ("bvlc_alexnet", {"ReLU": 7, "Convolution": 5, "Pooling": 3, "InnerProduct": 3, "LRN": 2, "Dropout": 2}),
    ("bvlc_googlenet", {"ReLU": 61, "Convolution": 59, "Pooling": 16, "Concat": 9, "Accuracy": 6,
                        "InnerProduct": 5, "Dropout": 3, "SoftmaxWithLoss": 3, "LRN": 2}),
    ("resnet50", {"Convolution": 53, "BatchNorm": 53, "Scale": 53, "ReLU": 49, "Eltwise": 16, "Pooling": 2,
                  "InnerProduct": 1}),
])
def test_nets_have_the_layers_of_their_papers(folder, kinds):
    net = read(f"models/{folder}/train_val.prototxt")
    assert {kind: count(net, kind) for kind in kinds} == kinds


@pytest.mark.parametrize("folder, last", [("bvlc_alexnet", "conv5"), ("bvlc_googlenet", "inception_5b/output"),
                                          ("resnet50", "res5c")])
def test_deploy_nets_end_in_probabilities(folder, last):
    net = read(f"models/{folder}/deploy.prototxt")
    _, shapes = net_flops.layers_of(net)
    assert net["layer"][-1]["type"] == ["Softmax"]
    assert shapes["prob"] == (1000,)
    assert last in shapes


# Multiply-adds as the literature counts them: 0.72, 1.6 and 3.8 thousand million.
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
