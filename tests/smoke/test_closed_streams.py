"""Runs whose streams are closed, full or no longer read, and runs on full disks."""
import os
import pathlib
import signal
import subprocess

import numpy as np
import pytest

from caffe.proto import caffe_pb2


def states(folder, prefix="run"):
    return sorted(folder.glob(f"{prefix}_iter_*.solverstate"), key=lambda one: int(one.stem.split("_")[-1]))


def resumes(state, solver, program, run):
    iteration = int(state.stem.split("_")[-1])
    short = solver("check", max_iter=iteration + 1, snapshot_after_train="false")
    done = run(program("caffe"), "train", f"--solver={short}", f"--snapshot={state}")
    return done.returncode == 0


@pytest.fixture
def shell(program):
    """Runs a line of bash in which $CAFFE is the program, with the signals of an ordinary terminal."""
    def call(line, timeout=120, **options):
        return subprocess.run(["bash", "-c", line], env={**os.environ, "CAFFE": program("caffe")}, timeout=timeout,
                              check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              restore_signals=True, **options)
    return call


@pytest.mark.parametrize("streams", ["2>&-", ">&-", "<&- >&- 2>&-", "2>/dev/full", "> /dev/full", "> /dev/full 2>&1"])
def test_a_run_without_its_streams_ends_whole(streams, tmp_path, program, run, solver, shell):
    """Training prints nothing essential: the run continues to its end, and so does its snapshot."""
    file = solver("run", max_iter=30, display=1, snapshot=10)
    done = shell(f'"$CAFFE" train --solver={file} {streams}')
    assert done.returncode == 0, done.stderr[-2000:]
    assert [one.stem for one in states(tmp_path)] == ["run_iter_10", "run_iter_20", "run_iter_30"]
    assert resumes(states(tmp_path)[-1], solver, program, run)


def test_a_reader_of_the_log_that_ends_stops_the_run_with_a_snapshot(tmp_path, program, run, solver, shell):
    file = solver("run", max_iter=10000000, display=20)
    done = shell(f'"$CAFFE" train --solver={file} 2>&1 | sed "/Iteration 40/q"; echo "${{PIPESTATUS[0]}}"')
    assert done.stdout.splitlines()[-1] == "0", done.stdout
    assert len(states(tmp_path)) == 1 and resumes(states(tmp_path)[0], solver, program, run)


def test_a_reader_of_the_log_that_ends_before_training_begins(tmp_path, solver, shell):
    """There is nothing to save yet: the run ends like any program in a pipe, or with its first snapshot."""
    file = solver("run", max_iter=10000000, display=20)
    done = shell(f'"$CAFFE" train --solver={file} 2>&1 | head -1; echo "${{PIPESTATUS[0]}}"')
    status = int(done.stdout.splitlines()[-1])
    assert (status, len(states(tmp_path))) in ((128 + signal.SIGPIPE, 0), (0, 1)), done.stdout


def test_a_limit_of_file_sizes(tmp_path, program, run, solver, shell):
    """Snapshots during the run fail and training continues; the last one decides the status."""
    assert run(program("caffe"), "train", f"--solver={solver('run', max_iter=5)}").returncode == 0
    file = solver("run", max_iter=30, snapshot=10)
    done = shell(f'ulimit -f 4; "$CAFFE" train --solver={file} --snapshot={tmp_path}/run_iter_5.solverstate')
    assert done.returncode == 1
    assert done.stderr.count("failed, training goes on") == 2 and "ulimit -f" in done.stderr.splitlines()[-1]
    assert [one.stem for one in states(tmp_path)] == ["run_iter_5"]
    assert resumes(states(tmp_path)[0], solver, program, run)
    assert not list(tmp_path.glob("*.tmp.*"))


def can_mount():
    command = ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]
    try:
        return os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not can_mount(), reason="needs root, who may mount a file system for this process alone")
@pytest.mark.parametrize("format", ["BINARYPROTO", "HDF5"])
def test_a_full_disk(format, tmp_path, program, run, solver, shell):
    """Two snapshots fit. The third fails, training continues, and the two stay complete."""
    disk = tmp_path / "disk"
    disk.mkdir()
    (tmp_path / "kept").mkdir()
    file = solver("run", max_iter=60, snapshot=10, snapshot_format=format, snapshot_prefix=f'"{disk}/run"')
    done = shell(f'mount -t tmpfs -o size=128k none {disk} && '
                 f'"$CAFFE" train --solver={file}; status=$?; cp -a {disk}/. {tmp_path}/kept; exit $status',
                 preexec_fn=private_mounts)
    assert done.returncode == 1, done.stderr[-2000:]
    assert "failed, training goes on" in done.stderr and "No space left on device" in done.stderr.splitlines()[-1]
    kept = list((tmp_path / "kept").glob("run_iter_*.solverstate*"))
    weights = list((tmp_path / "kept").glob("run_iter_*.caffemodel*"))
    # No weights without their state, except the last ones, which are all that is left of the run.
    assert 0 < len(kept) < 6 and len(weights) - len(kept) in (0, 1)
    assert not list((tmp_path / "kept").glob("*.tmp.*"))
    for state in kept:
        iteration = int(state.name.split(".")[0].split("_")[-1])
        short = solver("check", max_iter=iteration + 1, snapshot_after_train="false")
        again = run(program("caffe"), "train", f"--solver={short}", f"--snapshot={state}")
        assert again.returncode == 0, again.stderr[-2000:]


def private_mounts():
    import ctypes  # pylint: disable=import-outside-toplevel
    library = ctypes.CDLL(None, use_errno=True)
    namespace, private = 0x00020000, 1 << 18 | 1 << 14  # CLONE_NEWNS; MS_PRIVATE | MS_REC
    if library.unshare(namespace) != 0 or library.mount(b"none", b"/", None, private, None) != 0:
        raise OSError(ctypes.get_errno(), "a mount namespace of its own")


NET = """layer { name: "x" type: "DummyData" top: "x" dummy_data_param { shape { dim: 4 dim: 3 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y" inner_product_param { num_output: 2 } }
layer { name: "loss" type: "Reduction" bottom: "y" top: "loss" loss_weight: 1 }"""

PRINTING = ["", "help", "help train", "--version", "version", "version --json", "plan net.prototxt", "plan net.prototxt --json",
            "time net.prototxt --iterations=1 --json", "test net.prototxt --weights=w.caffemodel --iterations=1 --json",
            "layers", "layers --json", "device_query --json", "completion bash", "data head db",
            "data stat db", "data verify db --json"]


def weights():
    layer = caffe_pb2.LayerParameter(name="ip", type="InnerProduct")
    for shape in ((2, 3), (2,)):
        count = int(np.prod(shape))
        layer.blobs.add(shape=caffe_pb2.BlobShape(dim=shape), data=[0.5] * count)
    return caffe_pb2.NetParameter(layer=[layer]).SerializeToString()


@pytest.mark.parametrize("command", PRINTING)
def test_results_that_cannot_be_written_are_an_error(command, tmp_path, database, shell):
    (tmp_path / "net.prototxt").write_text(NET)
    (tmp_path / "w.caffemodel").write_bytes(weights())
    whole = shell(f'"$CAFFE" {command}', cwd=tmp_path)
    assert whole.returncode == 0 and whole.stdout, whole.stderr[-2000:]
    done = shell(f'"$CAFFE" {command} > /dev/full', cwd=tmp_path)
    assert done.returncode == 1
    assert "standard output: cannot write" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("name", ["convert_imageset", "compute_image_mean", "extract_features", "upgrade_net_proto_text"])
def test_the_small_tools_print_their_results_to_the_log_alone(name, program, run):
    """So there is nothing on standard output that could be lost."""
    done = run(program(name))
    assert done.returncode == 1 and done.stdout == ""


def test_files_of_the_log_on_a_full_disk(tmp_path, program, run, solver):
    """-log_dir names a place where nothing can be written: the run continues."""
    file = solver("run", max_iter=20, display=1)
    done = run(program("caffe"), "train", f"--solver={file}", "-log_dir=/dev/full")
    assert done.returncode == 0, done.stderr[-2000:]
    assert [pathlib.Path(one).stem for one in states(tmp_path)] == ["run_iter_20"]
