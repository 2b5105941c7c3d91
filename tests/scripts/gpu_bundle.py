"""caffe-gpu-check, and a bundle with programs that print, fail, crash and hang instead of Cortado's."""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def load(name, path):
    loader = importlib.machinery.SourceFileLoader(name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


gpu_check = load("gpu_check", ROOT / "scripts" / "caffe-gpu-check")
torch_step = load("gpu_torch_step", ROOT / "benchmarks" / "gpu" / "torch_step.py")


def report_of(*cases):
    return {"tests": len(cases), "testsuites": [{"name": "Suite", "testsuite": list(cases)}]}


PASSED = {"name": "a", "result": "COMPLETED"}
SKIPPED = {"name": "b", "result": "SKIPPED"}
FAILED = {"name": "c", "result": "COMPLETED", "failures": [{"failure": "1 is not 2"}]}


STEPS = [
    {"layers": "conv1", "op": "Conv[3x3]", "kernel": "conv-cudnn", "algorithm": "eng62", "ms": 2.0, "bytes": 4.8e9, "flops": 989e9},
    {"layers": "bn1", "op": "BatchNorm", "kernel": "bn", "ms": 4.0, "bytes": 4.8e9, "flops": 1e6},
    {"layers": "bn2", "op": "BatchNorm", "kernel": "bn", "ms": 1.0, "bytes": 4.8e9, "flops": 1e6},
]
DOCUMENT = {"batch": 256, "start_seconds": 3.5, "plan_bytes": 1 << 30,
            "captured": {"stretches": 1, "nodes": 3, "refused": 0, "reason": ""},
            "pipelined": {"p10_ms": 7.0, "p50_ms": 10.0, "p90_ms": 11.0, "images_per_s": 25600.0, "host_idle_share": 0.9},
            "steps": STEPS, "update_ms": 1.5, "plans_proposed": 0, "plans_built": 0}

CAFFE = """#!/usr/bin/env python3
import json, os, sys, time
DOCUMENT = {document!r}
DESCRIPTION = "NVIDIA H200 (compute capability 9.0, 132 multiprocessors, 139 GiB)"
command, arguments = sys.argv[1], sys.argv[2:]
if command == "device_query":
    {device_query}
    print(json.dumps({{"gpus": [{{"id": 0, "description": DESCRIPTION}}]}}))
else:
    {others}
    print(json.dumps(DOCUMENT))
"""
TESTS = """#!/bin/sh
for argument; do case $argument in
  --gtest_filter=*) filter=${{argument#*=}};;
  --gtest_output=json:*) report=${{argument#*:}};;
esac; done
{body}
"""


@pytest.fixture
def bundle(tmp_path):
    """An installed tree of programs whose behaviour a test chooses."""
    def make(device_query="pass", others="pass", tests=f"echo '{json.dumps(report_of(PASSED))}' > $report"):
        (tmp_path / "bin").mkdir()
        (tmp_path / "libexec" / "cortado").mkdir(parents=True)
        shutil.copy(ROOT / "scripts" / "caffe-gpu-check", tmp_path / "bin")
        programs = {"bin/caffe": CAFFE.format(document=DOCUMENT, device_query=device_query, others=others),
                    "libexec/cortado/conformance_test": TESTS.format(body=tests)}
        for name, text in programs.items():
            (tmp_path / name).write_text(text)
            (tmp_path / name).chmod(0o755)
        return tmp_path
    return make


# Answers a query once, or in a loop until it is ended: first idle, then busy with all its memory in use, then idle. Reports when a
# loop has answered many times; by then a reader has received the first answers.
SMI = """#!/usr/bin/env python3
import os, sys, time
ROWS = {rows!r}
options = dict(argument.split("=", 1) for argument in sys.argv[1:])
open({calls!r}, "a").write(f"{{os.getpid()}} {{'loop' if '--loop-ms' in options else 'once'}}\\n")
selected = [row for row in ROWS if options.get("--id") in (None, row["uuid"])]
keys = options["--query-gpu"].split(",")
turn = 0
while True:
    for row in selected:
        values = [row.get(key, "[N/A]") for key in keys]
        line = ", ".join(value[min(turn, len(value) - 1)] if isinstance(value, list) else value for value in values)
        try:
            os.write(1, line.encode() + b"\\n")
        except OSError:
            pass  # nobody reads any more, which need not end the program
    if "--loop-ms" not in options:
        break
    turn += 1
    if turn == 25:
        open({calls!r} + "_enough", "w").close()
    time.sleep(0.02)
"""
# The program, which waits for that.
WATCHED = "exec('while not os.path.exists(os.environ[\\'SMI_ENOUGH\\']): time.sleep(0.01)')"
BUSY = {"index": "0", "uuid": "GPU-aa", "name": "NVIDIA H200", "memory.used": ["1000", "3000", "5000", "1000"],
        "clocks.sm": ["345", "1980", "1200", "1500", "345"], "power.draw": ["90.5", "700.1", "650.0", "600.0", "90.0"],
        "utilization.gpu": ["0", "100", "100", "100", "0"]}


def add_smi(root, *rows):
    (root / "path").mkdir()
    program = root / "path" / "nvidia-smi"
    program.write_text(SMI.format(rows=rows, calls=str(root / "smi_calls")))
    program.chmod(0o755)


def calls_of_smi(root):
    return [line.split() for line in (root / "smi_calls").read_text().splitlines()]


def start(root, *arguments, python=sys.executable, **environment):
    return subprocess.Popen([python, root / "bin" / "caffe-gpu-check", f"--output={root / 'report.json'}", *arguments],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "PATH": f"{root / 'path'}:/usr/bin:/bin",
                                 "SMI_ENOUGH": str(root / "smi_calls_enough"), **environment})


def check(root, *arguments, **options):
    """Returns the exit status, the lines of JSON and the report."""
    process = start(root, *arguments, **options)
    output, errors = process.communicate(timeout=300)
    lines = [json.loads(line) for line in output.splitlines()]
    return process.returncode, lines, json.loads((root / "report.json").read_text()), errors
