"""caffe-gpu-check and the GPU benchmark, as far as they go without a GPU."""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def load(name, path):
    loader = importlib.machinery.SourceFileLoader(name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


gpu_check = load("gpu_check", ROOT / "scripts" / "caffe-gpu-check")
step_time = load("gpu_step_time", ROOT / "benchmarks" / "gpu" / "step_time.py")


def report_of(*cases):
    return {"tests": len(cases), "testsuites": [{"name": "Suite", "testsuite": list(cases)}]}


PASSED = {"name": "a", "result": "COMPLETED"}
SKIPPED = {"name": "b", "result": "SKIPPED"}
FAILED = {"name": "c", "result": "COMPLETED", "failures": [{"failure": "1 is not 2"}]}


def test_tests_pass_when_some_ran_and_none_failed():
    assert gpu_check.summary_of_tests(report_of(PASSED, SKIPPED)) == {
        "passed": True, "ran": 1, "skipped": 1, "failures": []}


def test_a_failure_is_named():
    summary = gpu_check.summary_of_tests(report_of(PASSED, FAILED))
    assert not summary["passed"]
    assert summary["failures"] == [{"test": "Suite.c", "message": "1 is not 2"}]


def test_tests_that_were_all_skipped_did_not_pass():
    assert not gpu_check.summary_of_tests(report_of(SKIPPED))["passed"]


def test_times_are_read_from_the_log():
    log = "Iteration: 1 forward-backward time: 12.5 ms.\nIteration: 2 forward-backward time: 1e+01 ms.\n"
    assert gpu_check.times_of(log) == [10, 12.5]


def test_the_reason_of_a_failure_is_one_line():
    failed = gpu_check.summary_of_tests(report_of(PASSED, FAILED))
    assert gpu_check.reason_of(failed).startswith("1 of 2 tests failed, the first ")
    benchmarks = {"passed": False, "results": {"lenet fp32": {"best_ms": 1}, "alexnet fp32": {"output": "a\nb\n"}}}
    assert gpu_check.reason_of(benchmarks) == "b"
    assert gpu_check.reason_of({"passed": False}) == "see the report"


def fake_bundle(folder, device_query):
    """Where `caffe` prints what device_query says."""
    (folder / "bin").mkdir()
    shutil.copy(ROOT / "scripts" / "caffe-gpu-check", folder / "bin")
    program = folder / "bin" / "caffe"
    program.write_text(f"#!/bin/sh\n{device_query}\n")
    program.chmod(0o755)
    return folder / "bin" / "caffe-gpu-check"


def run(check, *arguments, **environment):
    return subprocess.run([sys.executable, check, *arguments], env={**os.environ, **environment}, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_without_a_gpu_the_report_says_why_and_nothing_else_runs(tmp_path):
    log = "E1121 12:02:45.685636 20712 caffe.cpp:566] caffe device_query: cuda: no NVIDIA driver is loaded"
    check = fake_bundle(tmp_path, f"echo '{log}'; exit 1")
    done = run(check, f"--output={tmp_path / 'report.json'}")
    assert done.returncode == 1
    assert done.stderr.splitlines()[1:] == ["  caffe device_query: cuda: no NVIDIA driver is loaded"]
    report = json.loads((tmp_path / "report.json").read_text())
    assert not report["passed"]
    assert list(report["checks"]) == ["device"]
    assert "no NVIDIA driver" in report["checks"]["device"]["output"]


def test_a_device_is_reported(tmp_path):
    check = fake_bundle(tmp_path, "echo 'I1121 caffe.cpp:1] Device 0: NVIDIA H200 (compute capability 9.0)'")
    done = run(check, "--only", "device")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["checks"]["device"]["device"] == "NVIDIA H200 (compute capability 9.0)"


def test_batch_size_is_changed_in_all_input_shapes():
    text = (ROOT / "benchmarks" / "nets" / "resnet50.prototxt").read_text()
    changed = step_time.with_batch(text, 256)
    assert step_time.batch_of(changed) == 256
    assert step_time.with_batch(changed, step_time.batch_of(text)) == text
