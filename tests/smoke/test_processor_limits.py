"""Under a limit on processor time (docker --cpus=1, Kubernetes), the number of threads of a net follows the limit."""
import os
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NET = os.path.join(ROOT, "models", "cifar10_resnet20", "deploy.prototxt")
# The files that a container with --cpus=1 sees, for control groups of version 2 and 1.
LIMIT = """
mount -t tmpfs none /sys/fs/cgroup && mkdir /sys/fs/cgroup/cpu &&
echo 100000 100000 >/sys/fs/cgroup/cpu.max &&
echo 100000 >/sys/fs/cgroup/cpu/cpu.cfs_quota_us && echo 100000 >/sys/fs/cgroup/cpu/cpu.cfs_period_us && exec "$@"
"""
# The number of OpenMP threads in the main thread and in another one, each after a pass.
THREADS = """
import ctypes, threading, sys
import caffe
net = caffe.Net(sys.argv[1], caffe.TEST)
found = []
def run():
    net.forward()
    found.append(ctypes.CDLL("libgomp.so.1").omp_get_max_threads())
run()
other = threading.Thread(target=run)
other.start()
other.join()
print(*found)
"""


def can_mount():
    try:
        return os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "sh", "-c", LIMIT, "sh", "true"],
                                                    capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


needs_a_limit = pytest.mark.skipif(not can_mount() or len(os.sched_getaffinity(0)) < 2,
                                   reason="needs two processors, and root, who may mount for this process alone")


def limited(*command, **environment):
    done = subprocess.run(["unshare", "--mount", "sh", "-c", LIMIT, "sh", *command], capture_output=True, text=True,
                          env={**{k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}, **environment},
                          timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@needs_a_limit
@pytest.mark.parametrize("environment, threads", [({}, 1), ({"OMP_NUM_THREADS": "2"}, 2)])
def test_programs(environment, threads, program):
    assert f", {threads} threads, " in limited(program("caffe"), "plan", f"--model={NET}", "--phase=TEST", **environment)


@needs_a_limit
def test_python_in_every_thread(program):
    package = os.path.join(os.path.dirname(os.path.dirname(str(program("caffe")))), "python")
    assert limited(sys.executable, "-c", THREADS, NET, PYTHONPATH=package).split() == ["1", "1"]
