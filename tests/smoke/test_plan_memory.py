"""`caffe plan SOLVER` predicts the memory of `caffe train`: its peak resident memory, including the test net."""
import json
import subprocess
import sys

import pytest

SOLVER = """net: "net.prototxt" base_lr: 0.001 lr_policy: "fixed" momentum: 0.9 max_iter: 4 display: 0
test_iter: 2 test_interval: 2 snapshot_prefix: "done"
"""
TAIL = """
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "last" bottom: "label" top: "loss" }
layer { name: "accuracy" type: "Accuracy" bottom: "last" bottom: "label" top: "accuracy" include { phase: TEST } }
"""
FILLER = 'weight_filler { type: "xavier" }'


def dummy(shape, batch):
    """Batches that are not read from a file; a test batch has twice as many items."""
    return "".join(f"""layer {{ name: "data" type: "DummyData" top: "data" top: "label" include {{ phase: {phase} }}
      dummy_data_param {{ shape {{ dim: {items} {shape} }} shape {{ dim: {items} }} }} }}
    """ for phase, items in (("TRAIN", batch), ("TEST", 2 * batch)))


# Activations of the test net, with twice the batch size, are a large part.
CONVOLUTIONS = dummy("dim: 16 dim: 96 dim: 96", 24) + "".join(f"""
layer {{ name: "conv{i}" type: "Convolution" bottom: "{'data' if i == 0 else f'conv{i - 1}'}" top: "conv{i}"
  convolution_param {{ num_output: 32 kernel_size: 3 pad: 1 {FILLER} }} }}
layer {{ name: "relu{i}" type: "ReLU" bottom: "conv{i}" top: "conv{i}" }}""" for i in range(3)) + f"""
layer {{ name: "last" type: "InnerProduct" bottom: "conv2" top: "last" inner_product_param {{ num_output: 10 {FILLER} }} }}
""" + TAIL

# Most of the memory is weights, their gradients, the solver's state and the snapshot.
PRODUCTS = dummy("dim: 4096", 32) + f"""
layer {{ name: "fc" type: "InnerProduct" bottom: "data" top: "fc" inner_product_param {{ num_output: 4096 {FILLER} }} }}
layer {{ name: "last" type: "InnerProduct" bottom: "fc" top: "last" inner_product_param {{ num_output: 10 {FILLER} }} }}
""" + TAIL

# Most of the memory is batches that are read ahead; all buffers are used, even in a short training.
DATABASE = """
layer { name: "data" type: "Data" top: "data" top: "label" data_param { source: "db" batch_size: 20000 prefetch: 3 } }
layer { name: "last" type: "InnerProduct" bottom: "data" top: "last" inner_product_param { num_output: 10 %s } }
""" % FILLER + TAIL


# Prints the peak of a command in KiB. Runs in a separate process, because a peak begins with the parent's memory at the fork.
MEASURE = """
import resource, subprocess, sys
status = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)
"""


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("net", [CONVOLUTIONS, PRODUCTS, DATABASE], ids=["convolutions", "products", "database"])
def test_the_planned_peak_is_that_of_training(net, precision, tmp_path, program, database):
    assert database.name == "db"
    (tmp_path / "net.prototxt").write_text(net)
    (tmp_path / "solver.prototxt").write_text(SOLVER)
    command = [program("caffe"), "plan", "solver.prototxt", f"--precision={precision}", "--json"]
    planned = json.loads(subprocess.run(command, cwd=tmp_path, check=True, capture_output=True).stdout)["memory"]
    train = subprocess.run([sys.executable, "-c", MEASURE, program("caffe"), "train", "solver.prototxt",
                            f"--precision={precision}"], cwd=tmp_path, check=False, capture_output=True, text=True)
    assert train.returncode == 0, train.stderr
    resident = int(train.stdout.split()[-1]) * 1024
    assert abs(planned["total"] - resident) <= 0.05 * resident + planned["running"], (planned, resident)
