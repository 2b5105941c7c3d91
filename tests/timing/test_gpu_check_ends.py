"""caffe-gpu-check ends the processes that it has started: after a time-out, a signal, and its own death."""
import json
import os
import signal
import time

import pytest

from gpu_bundle import BUSY, add_smi, bundle, calls_of_smi, gpu_check, start  # pylint: disable=unused-import
from processes import ends
from programs import PATIENCE


def text_in(file, process):
    """Waits until the file has content; returns it."""
    end = time.monotonic() + PATIENCE
    while not file.exists() or not file.read_text():
        assert process.poll() is None and time.monotonic() < end, f"nothing came into {file}"
        time.sleep(0.01)
    return file.read_text()


def test_what_a_hanging_program_started_ends_with_it(tmp_path):
    script = f"sleep 600 & echo $! > {tmp_path / 'child'}; wait"
    assert gpu_check.run(["sh", "-c", script], 2).timed_out
    assert ends((tmp_path / "child").read_text().strip())


def test_what_a_kill_does_not_end_is_left_behind(tmp_path, monkeypatch):
    """Simulates a process that is stuck in the driver: here it has left the group that is killed."""
    monkeypatch.setattr(gpu_check, "KILL_SECONDS", 0.5, raising=False)
    script = f"echo begun; setsid sleep 600 & echo $! > {tmp_path / 'child'}; wait"
    done = gpu_check.run(["sh", "-c", script], 2)
    os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)
    assert done.timed_out and done.output == "begun\n"
    assert done.failure()["why"] == "its time was up; its output is held 0.5 s after the kill"


def test_a_signal_ends_all_shards(bundle):
    root = bundle(tests="echo $$ >> $RECORD; sleep 600")
    process = start(root, "--only", "conformance", RECORD=str(root / "shards"))
    text_in(root / "shards", process)  # the others may be starting
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    assert all(ends(number) for number in (root / "shards").read_text().split())
    assert json.loads((root / "report.json").read_text())["stopped"] == "signal SIGTERM"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_after_a_kill_the_report_has_what_was_found(bundle, number):
    root = bundle(others="open(sys.argv[0] + '.pid', 'w').write(str(os.getpid())); time.sleep(600)")
    add_smi(root, BUSY)
    process = start(root, "--only", "resnet50 bf16 untimed")
    child = text_in(root / "bin" / "caffe.pid", process)
    process.send_signal(number)
    process.communicate(timeout=PATIENCE)
    assert process.returncode != 0
    report = json.loads((root / "report.json").read_text())
    assert report["steps"]["environment"]["passed"]
    assert report["running"] == "resnet50 bf16 untimed"
    if number == signal.SIGTERM:
        assert report["stopped"] == "signal SIGTERM" and not report["passed"]
    assert ends(child)
    for number, kind in calls_of_smi(root):
        assert kind == "once" or ends(number)
