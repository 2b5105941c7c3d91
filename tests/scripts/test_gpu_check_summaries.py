"""Summaries of caffe-gpu-check: tests, a net's steps, failures."""
import pytest

from gpu_bundle import (  # pylint: disable=unused-import
    DOCUMENT, FAILED, PASSED, SKIPPED, STEPS, bundle, gpu_check, report_of)


def test_tests_pass_when_none_failed():
    assert gpu_check.summary_of_tests(report_of(PASSED, SKIPPED)) == {
        "passed": True, "ran": 1, "skipped": 1, "failures": []}


def test_a_failure_is_named():
    summary = gpu_check.summary_of_tests(report_of(PASSED, FAILED))
    assert not summary["passed"]
    assert summary["failures"] == [{"test": "Suite.c", "message": "1 is not 2"}]


def test_the_reason_of_a_failure_is_one_line():
    failed = gpu_check.summary_of_tests(report_of(PASSED, FAILED))
    assert gpu_check.reason_of(failed) == "1 tests failed, the first Suite.c"
    assert gpu_check.reason_of({"why": "status 1", "output": "a\nb\n"}) == "status 1: b"
    assert gpu_check.reason_of({"passed": False}) == "see the report"


H200 = gpu_check.PEAKS["H200"]


def test_steps_are_summed_by_class_with_their_rates_and_roofline():
    classes = gpu_check.by_class(STEPS, H200, "bf16")
    assert list(classes) == ["BatchNorm", "Conv"]
    assert classes["BatchNorm"] == {"steps": 2, "ms": 5.0, "roofline_ms": pytest.approx(2.0), "gb_per_s": pytest.approx(1920),
                                    "tflops": pytest.approx(4e-4)}
    assert classes["Conv"]["tflops"] == pytest.approx(494.5)
    assert "roofline_ms" not in gpu_check.by_class(STEPS, None, "bf16")["Conv"]


def test_the_steps_that_lose_most_come_first():
    rows = gpu_check.furthest(STEPS, H200, "bf16")
    assert [row["layers"] for row in rows] == ["bn1", "conv1", "bn2"]
    assert rows[1] == {"layers": "conv1", "op": "Conv[3x3]", "kernel": "conv-cudnn", "algorithm": "eng62", "ms": 2.0,
                       "roofline_ms": pytest.approx(1.0)}


@pytest.mark.parametrize("name, bandwidth", [
    ("NVIDIA H200", 4.8e12), ("NVIDIA H200 NVL", 4.8e12), ("NVIDIA GH200 480GB", 4e12), ("NVIDIA H100 80GB HBM3", 3.35e12),
    ("NVIDIA H100 PCIe", 2e12), ("NVIDIA H100 NVL", 3.9e12), ("NVIDIA A100-PCIE-40GB", 1.555e12), ("Tesla T4", 0.32e12),
    ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", None), ("NVIDIA H200 MIG 1g.18gb", None), ("NVIDIA GB200", None),
    ("NVIDIA T400 4GB", None)])
def test_the_roofline_is_of_the_chip_by_its_whole_name(bundle, monkeypatch, name, bandwidth):
    root = bundle(device_query=f"DESCRIPTION = '{name} (compute capability 9.0, 7 multiprocessors, 9 GiB)'")
    monkeypatch.setattr(gpu_check, "ROOT", root)
    context = gpu_check.Context(type("Options", (), {"budget": 0, "gpu": 0}))
    report = gpu_check.environment(context)
    assert (context.peaks() or [None])[0] == bandwidth
    assert report["roofline"].startswith("of the data sheet" if bandwidth else "none: no data sheet of ")


def test_products_of_floats_have_their_own_peak():
    assert gpu_check.roofline_ms(STEPS[0], H200, "fp32") == pytest.approx(989 / 494)


def test_a_net_is_summarised():
    summary = gpu_check.summary_of_times(DOCUMENT, H200, "bf16")
    assert summary["p50_ms"] == 10 and summary["images_per_s"] == 25600 and summary["start_seconds"] == 3.5
    assert summary["steps_ms"] == 7 and summary["update_ms"] == 1.5
    assert summary["gpu_idle_share"] == pytest.approx(0.15)
    assert summary["roofline_ms"] == pytest.approx(3)


OUTPUT = """[==========] Running 5 tests from 2 test suites.
[ RUN      ] A.a
[       OK ] A.a (3 ms)
[ RUN      ] A.b
a.cpp:3: Failure
1 is not 2
[  FAILED  ] A.b, where GetParam() = "x" (1 ms)
[ RUN      ] A.c
a.cpp:4: Skipped
no engine
[  SKIPPED ] A.c (0 ms)
[ RUN      ] B/C.d/Cuda
"""


@pytest.mark.parametrize("status, why", [(-11, "status -11"), (None, "its time was up")])
def test_of_a_program_without_a_report_its_output_counts(status, why):
    summary = gpu_check.summary_of_output(gpu_check.Run(status, OUTPUT + "noise"))
    assert summary["failures"] == [{"test": "A.b", "message": "a.cpp:3: Failure\n1 is not 2"},
                                   {"test": "B/C.d/Cuda", "message": why}]
    assert (summary["ran"], summary["skipped"], summary["why"], summary["passed"]) == (2, 1, why, False)
    assert gpu_check.summary_of_output(gpu_check.Run(1, "no such file"))["failures"] == []
    unfinished = gpu_check.summary_of_output(gpu_check.Run(1, "[ RUN      ] A.a\na line[       OK ] A.a (3 ms)\n"))
    assert unfinished["failures"] == [] and unfinished["ran"] == 1
