"""Each example from its data to its weights, for a few iterations."""
import re
import subprocess
import sys
import tarfile

import lmdb
import numpy as np
import pytest

from caffe.proto import caffe_pb2
from conftest import ROOT, need_program, real_data, slow


def render_digits(folder, train, test):
    subprocess.run([sys.executable, ROOT / "scripts" / "make_digits.py", folder, f"--train={train}", f"--test={test}"],
                   check=True)
    return folder


def accuracy(workplace, model, weights, iterations=10):
    output = workplace.run("caffe", "test", f"--model={model}", f"--weights={weights}", f"--iterations={iterations}")
    return float(re.findall(r"\] accuracy = ([\d.e+-]+)", output)[-1])


@pytest.mark.parametrize("solver, prefix", [("lenet_solver", "lenet"), ("lenet_multistep_solver", "lenet_multistep")])
def test_mnist_on_rendered_digits(workplace, tmp_path, solver, prefix):
    need_program("convert_mnist_data")
    workplace.run("examples/mnist/create_mnist.sh", render_digits(tmp_path / "digits", 500, 100))
    path = workplace.edit(f"examples/mnist/{solver}.prototxt", max_iter=20, test_interval=10, test_iter=1, display=5)
    log = workplace.run("caffe", "train", f"--solver={path}")
    assert "Iteration 10, Testing net (#0)" in log
    assert "Optimization Done." in log
    weights = f"examples/mnist/{prefix}_iter_20.caffemodel"
    assert (workplace.root / weights.replace("caffemodel", "solverstate")).exists()
    assert 0 <= accuracy(workplace, "examples/mnist/lenet_train_test.prototxt", weights, 1) <= 1


def test_databases_are_kept(workplace, tmp_path):
    need_program("convert_mnist_data")
    digits = render_digits(tmp_path / "digits", 20, 10)
    assert "Made examples/mnist/mnist_test_lmdb" in workplace.run("examples/mnist/create_mnist.sh", digits)
    assert "examples/mnist/mnist_test_lmdb exists" in workplace.run("examples/mnist/create_mnist.sh", digits)


def test_lenet_learns_real_mnist(workplace):
    digits = real_data("mnist")
    need_program("convert_mnist_data")
    workplace.run("examples/mnist/create_mnist.sh", digits)
    path = workplace.edit("examples/mnist/lenet_solver.prototxt", max_iter=500)
    workplace.run("caffe", "train", f"--solver={path}")
    # Over seeds 0.965 to 0.974 here.
    assert accuracy(workplace, "examples/mnist/lenet_train_test.prototxt", "examples/mnist/lenet_iter_500.caffemodel") > 0.95


def test_lenet_learns_rendered_digits(workplace, tmp_path):
    slow()
    need_program("convert_mnist_data")
    workplace.run("examples/mnist/create_mnist.sh", render_digits(tmp_path / "digits", 12000, 2000))
    path = workplace.edit("examples/mnist/lenet_solver.prototxt", max_iter=2000, test_iter=20)
    workplace.run("caffe", "train", f"--solver={path}")
    assert accuracy(workplace, "examples/mnist/lenet_train_test.prototxt", "examples/mnist/lenet_iter_2000.caffemodel", 20) > 0.97


def some_of_cifar10(source, folder, count):
    """The first images of both lists, as files with their lists."""
    folder.mkdir()
    for part in ("train", "test"):
        lines = (source / f"{part}.txt").read_text().splitlines()[:count]
        (folder / f"{part}.txt").write_text("\n".join(lines) + "\n")
        wanted = {line.split()[0] for line in lines}
        with tarfile.open(source / f"{part}.tar.gz") as archive:
            for member in archive:
                if member.name.removeprefix("./") in wanted:
                    target = folder / member.name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(archive.extractfile(member).read())
    return folder


def test_cifar10_quick(workplace, tmp_path):
    source = real_data("cifar10")
    need_program("convert_imageset")
    need_program("compute_image_mean")
    workplace.run("examples/cifar10/create_cifar10.sh", some_of_cifar10(source, tmp_path / "cifar10", 300))
    first = workplace.edit("examples/cifar10/cifar10_quick_solver.prototxt", max_iter=4, test_interval=4, test_iter=1)
    second = workplace.edit("examples/cifar10/cifar10_quick_solver_lr1.prototxt", max_iter=6, test_interval=4, test_iter=1)
    workplace.run("caffe", "train", f"--solver={first}")
    state = "examples/cifar10/cifar10_quick_iter_4.solverstate"
    workplace.run("caffe", "train", f"--solver={second}", f"--snapshot={state}")
    assert (workplace.root / "examples/cifar10/cifar10_quick_iter_6.caffemodel.h5").exists()


def test_padded_images_have_a_border(tmp_path):
    pixels = np.arange(1, 13, dtype=np.uint8).reshape(3, 2, 2)
    datum = caffe_pb2.Datum(channels=3, height=2, width=2, data=pixels.tobytes(), label=7)
    with lmdb.open(str(tmp_path / "from")) as database, database.begin(write=True) as transaction:
        transaction.put(b"0", datum.SerializeToString())
    script = ROOT / "examples/cifar10/pad_database.py"
    for said in ("Made", "exists"):
        done = subprocess.run([sys.executable, script, "from", "to"], cwd=tmp_path, check=True, capture_output=True, text=True)
        assert said in done.stdout
    with lmdb.open(str(tmp_path / "to"), lock=False) as database, database.begin() as transaction:
        padded = caffe_pb2.Datum.FromString(transaction.get(b"0"))
    image = np.frombuffer(padded.data, np.uint8).reshape(3, padded.height, padded.width)
    assert (padded.label, image.shape, image.sum()) == (7, (3, 10, 10), pixels.sum())
    assert (image[:, 4:6, 4:6] == pixels).all()
