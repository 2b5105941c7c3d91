"""The job script of docs/neighbours/slurm.md, with stand-ins for Slurm's commands."""
import json
import os
import signal
import subprocess

import pytest

from programs import BINARIES, ROOT, Deadline, wait_for_line
from test_code_blocks import blocks_of

# Removes srun's own option, writes its process number and becomes the program.
SRUN = '#!/bin/sh\nshift\necho $$ >srun.pid\nexec "$@"\n'
SCONTROL = '#!/bin/sh\necho "$@" >>scontrol.log\n'


@pytest.fixture(name="job")
def job_in_a_folder(tmp_path, solver, program):
    program("caffe")
    text = (ROOT / "docs" / "neighbours" / "slurm.md").read_text()
    script = next(source for _, _, argument, source in blocks_of(text) if argument == "job.sh")
    (tmp_path / "job.sh").write_text(script)
    solver("solver", max_iter=100_000_000, display=20, snapshot_prefix='"digits"')
    (tmp_path / "bin").mkdir()
    for name, source in (("srun", SRUN), ("scontrol", SCONTROL)):
        (tmp_path / "bin" / name).write_text(source)
        (tmp_path / "bin" / name).chmod(0o755)

    def start(restarts):
        variables = {"SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "2", "SLURM_RESTART_COUNT": restarts,
                     "PATH": f"{tmp_path / 'bin'}:{BINARIES}:{os.environ['PATH']}"}
        return subprocess.Popen(["bash", "job.sh"], cwd=tmp_path, env={**os.environ, **variables}, text=True,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return start


def events(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def output_of(job):
    with Deadline(job):
        return job.stderr.read()


def test_a_stopped_job_is_queued_again_and_goes_on(job, tmp_path):
    runs = tmp_path / "runs"
    with job("") as first:
        wait_for_line(first, r"Iteration \d+ \(")
        os.kill(int((tmp_path / "srun.pid").read_text()), signal.SIGTERM)
        output = output_of(first)
    assert first.returncode == 0, output
    stop = events(runs / "7-0")[-1]
    assert stop["reason"] == "stopped" and stop["iteration"] > 0
    assert (tmp_path / "scontrol.log").read_text() == "requeue 7\n"
    solver = tmp_path / "solver.prototxt"
    solver.write_text(solver.read_text().replace("100000000", str(stop["iteration"] + 20)))
    with job("1") as second:
        output = output_of(second)
    begin, *_, end = events(runs / "7-1")
    assert begin["iteration"] == stop["iteration"] and end["reason"] == "finished", output
    assert (tmp_path / "scontrol.log").read_text() == "requeue 7\n"
