"""caffe.train in processes started by a launcher."""
import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "smoke"))
# pylint: disable=wrong-import-position
from ranks import environment, finish, free_port, mpirun, no_rank_is_left, start  # pylint: disable=unused-import

NET = """
layer { name: "x" type: "DummyData" top: "x" top: "label" dummy_data_param {
  shape { dim: 8 dim: 4 } shape { dim: 8 dim: 1 } data_filler { type: "gaussian" } data_filler { type: "constant" value: 1 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip" inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""


@pytest.fixture(name="solver")
def solver_in_a_folder(tmp_path):
    (tmp_path / "solver.prototxt").write_text(
        'base_lr: 0.1 lr_policy: "fixed" max_iter: 20 display: 0 snapshot_prefix: "s" net_param {' + NET + "}")
    return "solver.prototxt"


def python(*lines):
    return [sys.executable, "-c", "\n".join(lines)]


def variables(rank, port):
    return {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "localhost",
            "MASTER_PORT": str(port), "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def run_ranks(folder, *lines):
    port = free_port()
    return finish([start(folder, [python(*lines)], **variables(rank, port))[0] for rank in (0, 1)])


def test_train_joins_the_processes_of_the_launcher(tmp_path, solver):
    results = run_ranks(tmp_path, "import caffe", f"solver = caffe.train('{solver}', run_dir='run')",
                        "import hashlib, sys",
                        "weights = b''.join(b.data.tobytes() for bs in solver.net.params.values() for b in bs)",
                        "print(solver.rank, solver.iter, hashlib.sha256(weights).hexdigest(), file=sys.stderr)")
    said = [text.splitlines()[-1].split() for status, text in results if status == 0]
    assert [line[:2] for line in said] == [["0", "20"], ["1", "20"]], results
    assert said[0][2] == said[1][2]
    assert (tmp_path / "run" / "metrics.jsonl").exists()
    assert "alone" not in results[0][1]


def test_under_mpirun(tmp_path, solver):
    command = mpirun(2, *python("import caffe, sys", f"sys.stderr.write(f'rank {{caffe.train(\"{solver}\").rank}}\\n')"))
    [(status, said)] = finish(start(tmp_path, [command], PYTHONPATH=variables(0, 0)["PYTHONPATH"]))
    assert status == 0 and "rank 0" in said and "rank 1" in said, said


def test_a_solver_that_trains_alone_among_several_is_told(tmp_path, solver):
    for status, said in run_ranks(tmp_path, "import caffe", f"solver = caffe.SGDSolver('{solver}')", "solver.step(1)"):
        assert status == 0 and "has started 2 processes, but this solver trains alone" in said, said
    for status, said in run_ranks(tmp_path, "import caffe", f"solver = caffe.SGDSolver('{solver}', ranks=False)"):
        assert status == 0 and "alone" not in said, said


LAYER = """
import caffe
class Constant(caffe.Layer):
    def setup(self, bottom, top):
        pass
    def reshape(self, bottom, top):
        top[0].reshape(8, 4)
    def forward(self, bottom, top):
        top[0].data[...] = {}
"""


@pytest.mark.parametrize("differs", [False, True])
def test_layers_of_other_modules_are_told_apart(tmp_path, differs):
    """This holds wherever sys.path finds the modules, and for every module of a package."""
    net = NET.replace('top: "x" top: "label"', 'top: "label"').replace("shape { dim: 8 dim: 4 }", "")
    net = ('layer { name: "p" type: "Python" top: "x" python_param { module: "made" layer: "Constant" } }'
           + net.replace('data_filler { type: "gaussian" }', ""))
    (tmp_path / "solver.prototxt").write_text(
        'base_lr: 0.1 lr_policy: "fixed" max_iter: 2 random_seed: 1 snapshot_after_train: false net_param {' + net + "}")
    for rank in (0, 1):
        package = tmp_path / str(rank) / "made"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("from .layer import Constant")
        (package / "layer.py").write_text(LAYER.format(rank if differs else 1))
    results = run_ranks(tmp_path, "import os, sys", "sys.path.insert(0, os.environ['RANK'])", "import caffe",
                        "caffe.train('solver.prototxt')")
    for status, said in results:
        wanted = "rank 1 differs from rank 0 in what the files hold: line 1 is 'layer 'p': module 'made.layer' has "
        assert (status == 1 and wanted in said) if differs else status == 0, said


def test_an_exception_in_one_process_ends_the_other(tmp_path, solver):
    results = run_ranks(tmp_path, "import caffe", f"solver = caffe.get_solver('{solver}', ranks=True)",
                        "def stop():", "    if solver.rank == 1: raise ValueError('no more')",
                        "solver.add_callback(stop, lambda: None)", "solver.step(5)")
    assert [status for status, _ in results] == [1, 1]
    assert "rank 1 (host " in results[0][1] and "no more" in results[0][1], results
    assert "ValueError: no more" in results[1][1]


def test_alone_without_a_launcher(tmp_path, solver):
    done = subprocess.run(python("import caffe", f"assert caffe.train('{solver}').rank == 0"), cwd=tmp_path, check=False,
                          env=environment(tmp_path, PYTHONPATH=variables(0, 0)["PYTHONPATH"]), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_snapshot_is_restored_by_all(tmp_path, solver):
    results = run_ranks(tmp_path, "import caffe, sys", f"solver = caffe.get_solver('{solver}', ranks=True)",
                        "solver.step(3)", "state = solver.snapshot()", "solver.step(2)", "solver.restore(state)",
                        "print('at', solver.iter, file=sys.stderr)")
    for status, said in results:
        assert status == 0 and said.splitlines()[-1] == "at 3", results


def test_a_state_that_is_not_there_ends_all(tmp_path, solver):
    results = run_ranks(tmp_path, "import caffe", f"solver = caffe.get_solver('{solver}', ranks=True)",
                        "solver.restore('no.solverstate')")
    for status, said in results:
        assert status == 1 and "no.solverstate" in said, results


def test_weights_that_have_diverged_are_noticed_before_a_snapshot(tmp_path, solver):
    """The weights were changed in one process."""
    results = run_ranks(tmp_path, "import caffe", f"solver = caffe.get_solver('{solver}', ranks=True)", "solver.step(1)",
                        "if solver.rank == 1: solver.net.params['ip'][0].data[0, 0] += 1",
                        "solver.solve()")
    for status, said in results:
        assert status == 1 and "rank 1 differs from rank 0 in the hash of the weights after iteration 20" in said, results
    assert not list(tmp_path.glob("*.solverstate"))


def test_updates_of_one_process_alone_are_refused(tmp_path, solver):
    results = run_ranks(tmp_path, "import caffe", f"solver = caffe.get_solver('{solver}', ranks=True)",
                        "solver.net.forward()", "solver.net.backward()", "solver.apply_update()")
    for status, said in results:
        assert status == 1 and "use Step()" in said, results
