"""caffe-gpu-check, on machines without a GPU: programs that print, fail, crash and hang stand in for Cortado's."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading

import pytest

from gpu_bundle import (  # pylint: disable=unused-import
    BUSY, FAILED, PASSED, ROOT, SKIPPED, WATCHED, add_smi, bundle, calls_of_smi, check, gpu_check, load, report_of,
    start)

torch_step = load("gpu_torch_step", ROOT / "benchmarks" / "gpu" / "torch_step.py")


def test_tests_that_are_all_skipped_do_not_pass(bundle):
    root = bundle(tests=f"echo '{json.dumps(report_of(SKIPPED, SKIPPED))}' > $report")
    status, lines, _, _ = check(root, "--only", "conformance")
    assert status == 1 and not lines[-1]["passed"]
    assert lines[-1]["why"] == gpu_check.reason_of(lines[-1]) == "no test ran" and lines[-1]["skipped"] == 2 * gpu_check.SHARDS


def test_one_shard_without_a_test_is_no_failure(bundle):
    body = f"""if [ $GTEST_SHARD_INDEX = 5 ]; then echo '{json.dumps(report_of())}' > $report
    else echo '{json.dumps(report_of(PASSED))}' > $report; fi"""
    status, lines, _, _ = check(bundle(tests=body), "--only", "conformance")
    assert status == 0 and lines[-1]["ran"] == gpu_check.SHARDS - 1


def test_without_a_gpu_the_report_says_why_and_nothing_else_runs(bundle):
    log = "E1121 12:02:45.685636 20712 caffe.cpp:566] caffe device_query: cuda: no NVIDIA driver is loaded"
    root = bundle(device_query=f"sys.exit({log!r})")
    status, lines, report, errors = check(root)
    assert status == 1
    assert [line["step"] for line in lines] == ["environment"]
    assert "  status 1: caffe device_query: cuda: no NVIDIA driver is loaded" in errors.splitlines()
    assert not report["passed"] and list(report["steps"]) == ["environment"]


def test_each_step_is_a_line_and_in_the_report(bundle):
    status, lines, report, _ = check(bundle(), "--only", "resnet50 bf16 untimed", "resnet50 bf16", "conformance")
    assert status == 0
    names = ["environment", "resnet50 bf16 untimed", "resnet50 bf16", "conformance"]
    assert [line["step"] for line in lines] == names == list(report["steps"])
    assert report["passed"] and report["running"] is None
    assert report["steps"]["resnet50 bf16"]["images_per_s"] == 25600
    assert len(report["steps"]["resnet50 bf16"]["furthest"]) == 3
    assert report["steps"]["conformance"]["ran"] == gpu_check.SHARDS


def test_the_order_begins_with_what_a_short_visit_wants():
    names = list(gpu_check.all_steps())
    assert names[:7] == ["environment", "yardsticks", "resnet50 bf16 untimed", "resnet50 bf16",
                         "second start of resnet50 bf16", "torch resnet50 bf16", "torch resnet50 bf16 compiled"]
    order = [names.index(name) for name in ("conformance", "gradients", "training", "lenet", "resnet50 fp16", "googlenet bf16",
                                            "sanitizer memcheck")]
    assert order == sorted(order)
    # Ours is compared with PyTorch's faster variant, for each net and type.
    eager = [name for name in names if name.startswith("torch ") and not name.endswith(" compiled")]
    assert len(eager) == 6
    assert all(names.index(f"{name} compiled") > names.index(name) for name in eager)
    assert names.index("torch googlenet bf16 compiled") > names.index("vgg16 bf16")  # compiling takes minutes


def test_what_the_net_is_run_with(bundle):
    record = "open(os.environ['RECORD'], 'a').write(json.dumps([arguments, os.environ.get('CAFFE_TIME_ALGORITHMS')]) + '\\n')"
    root = bundle(others=record)
    os.environ["RECORD"] = str(root / "calls")
    try:
        check(root, "--only", "resnet50 bf16 untimed", "resnet50 bf16", "--batch=64")
    finally:
        del os.environ["RECORD"]
    calls = [json.loads(line) for line in (root / "calls").read_text().splitlines()]
    assert [timing for _, timing in calls] == ["0", None]
    for arguments, _ in calls:
        assert {"--batch=64", "--update", "--precision=bf16", "--json", "--gpu=0"} <= set(arguments)


def test_a_program_that_hangs_is_ended_and_the_next_step_runs(bundle, monkeypatch):
    root = bundle(others="time.sleep(600)")
    monkeypatch.setattr(gpu_check, "ROOT", root)
    options = type("Options", (), {"budget": 0, "gpu": 0, "batch": 8, "iterations": 1, "output": root / "report.json", "cache": root})
    context, report = gpu_check.Context(options), gpu_check.Report(options.output)
    gpu_check.run_steps({"hangs": (gpu_check.net_step("resnet50", "bf16", limit=1), 0),
                         "environment": (gpu_check.environment, 0)}, context, report)
    steps = json.loads((root / "report.json").read_text())["steps"]
    assert steps["hangs"]["why"] == "its time was up"
    assert steps["environment"]["passed"]


def test_a_process_that_cannot_be_killed_is_named(monkeypatch):
    class Stuck(subprocess.Popen):
        def communicate(self, input=None, timeout=None):
            raise subprocess.TimeoutExpired(self.args, timeout, output=b"begun\n")

        def poll(self):
            return None

    monkeypatch.setattr(gpu_check.subprocess, "Popen", Stuck)
    done = gpu_check.run(["true"], 1)
    assert done.timed_out and done.tail() == "begun\n"
    assert re.fullmatch(r"its time was up; process \d+ does not end 10 s after the kill", done.failure()["why"])


def test_a_process_that_a_thread_starts_while_the_program_stops_ends(monkeypatch):
    stopped = threading.Event()
    stopped.set()
    monkeypatch.setattr(gpu_check, "STOPPED", stopped)
    assert gpu_check.run(["sleep", "600"], 300).status == -signal.SIGKILL


def test_the_budget_ends_a_step_and_skips_the_rest(bundle, monkeypatch):
    """Uses a clock that stands still, and a budget of one second."""
    root = bundle(others="time.sleep(600)")
    monkeypatch.setattr(gpu_check, "ROOT", root)
    options = type("Options", (), {"budget": 1, "gpu": 0, "batch": 8, "iterations": 1, "output": root / "report.json", "cache": root})
    context, report = gpu_check.Context(options, clock=lambda: 0), gpu_check.Report(options.output)
    net = gpu_check.net_step("resnet50", "bf16", limit=600)
    gpu_check.run_steps({"ended": (net, 0), "skipped": (net, 15)}, context, report)
    steps = json.loads((root / "report.json").read_text())["steps"]
    assert steps["ended"]["why"] == "its time was up"
    assert steps["skipped"] == {"skipped": "no time left"}


def test_what_a_budget_has_no_time_for_is_in_the_report(bundle):
    _, lines, report, _ = check(bundle(), "--budget=1", "--only", "resnet50 bf16 untimed", "resnet50 bf16")
    assert report["steps"]["resnet50 bf16"] == report["steps"]["resnet50 bf16 untimed"] == {"skipped": "no time left"}
    assert [line["step"] for line in lines] == list(report["steps"])


def test_a_net_that_is_not_captured_fails(bundle):
    root = bundle(others="DOCUMENT['captured'].update(refused=1, reason='a copy')")
    status, lines, _, _ = check(root, "--only", "resnet50 bf16 untimed")
    assert status == 1
    assert lines[-1]["why"] == "not captured: a copy" and lines[-1]["p50_ms"] == 10


def test_a_net_whose_convolutions_no_library_computes_fails(bundle):
    root = bundle(others="DOCUMENT['steps'][0]['kernel'] = 'conv-reference'")
    status, lines, _, _ = check(root, "--only", "resnet50 bf16 untimed")
    assert status == 1 and lines[-1]["why"] == "no library computes conv-reference"


def test_memory_and_clocks_are_those_of_the_run(bundle):
    root = bundle(others=WATCHED)
    add_smi(root, BUSY)
    status, _, report, errors = check(root, "--only", "resnet50 bf16 untimed")
    assert status == 0, errors
    result = report["steps"]["resnet50 bf16 untimed"]
    assert result["peak_bytes"] == 4000 << 20
    assert result["clocks"] == {"samples": 3, "sm_mhz": {"min": 1200, "median": 1500},
                                "power_w": {"min": 600, "median": 650}}


def test_one_nvidia_smi_runs_beside_a_net_and_ends_with_it(bundle):
    root = bundle(others=WATCHED)
    add_smi(root, BUSY)
    check(root, "--only", "resnet50 bf16 untimed")
    loops = [number for number, kind in calls_of_smi(root) if kind == "loop"]
    assert len(loops) == 1 and len(calls_of_smi(root)) <= 3
    assert not pathlib.Path(f"/proc/{loops[0]}").exists()


def test_a_net_is_measured_where_nvidia_smi_tells_no_memory(bundle):
    root = bundle(others=WATCHED)
    add_smi(root, {**BUSY, "memory.used": "[N/A]", "power.draw": "[Insufficient Permissions]", "utilization.gpu": "[N/A]"})
    status, _, report, errors = check(root, "--only", "resnet50 bf16 untimed")
    assert status == 0, errors
    result = report["steps"]["resnet50 bf16 untimed"]
    assert result["images_per_s"] == 25600 and "peak_bytes" not in result
    assert result["clocks"]["sm_mhz"]["min"] == 345 and "power_w" not in result["clocks"]


@pytest.mark.parametrize("given, wheels", [(None, ("cu13", "cudnn")), ("/opt/nvidia", ("cu13", "cudnn")),
                                           (None, ("cublas", "cudnn"))])
def test_libraries_are_those_of_the_python_that_runs_it(bundle, tmp_path_factory, given, wheels):
    """The Python belongs to an environment that is not in PATH; libraries for CUDA 12 are ignored, because their cuDNN does not fit."""
    environment = tmp_path_factory.mktemp("environment")
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", environment], check=True)
    packages = next((environment / "lib").glob("python3*")) / "site-packages"
    folders = [packages / "nvidia" / wheel / "lib" for wheel in wheels]
    for folder in folders:
        folder.mkdir(parents=True)
    found = ":".join(map(str, folders)) if "cu13" in wheels else ""
    root = bundle(device_query="open(os.environ['RECORD'], 'w').write(os.environ.get('CAFFE_CUDA_LIBRARY_PATH', ''))")
    extra = {"CAFFE_CUDA_LIBRARY_PATH": given} if given else {}
    check(root, "--only", "environment", python=environment / "bin" / "python3", RECORD=str(root / "path_of_libraries"), **extra)
    assert (root / "path_of_libraries").read_text() == (given or found)


@pytest.mark.parametrize("inherited, gpu, visible", [
    (None, 0, "0"), (None, 3, "3"), ("5", 0, "5"), ("3,5", 0, "3"), ("3, 5", 1, "5"),
    ("GPU-aa,GPU-bb", 1, "GPU-bb"), ("MIG-cc", 0, "MIG-cc"), ("5", 1, "5")])
def test_tests_see_the_gpu_that_is_measured(bundle, monkeypatch, inherited, gpu, visible):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    environment = {"CUDA_VISIBLE_DEVICES": inherited} if inherited else {}
    root = bundle(tests=f"printf %s \"$CUDA_VISIBLE_DEVICES\" > $RECORD; echo '{json.dumps(report_of(PASSED))}' > $report")
    status, _, _, errors = check(root, f"--gpu={gpu}", "--only", "conformance", RECORD=str(root / "seen"), **environment)
    assert status == 0, errors
    assert (root / "seen").read_text() == visible


ROWS = [{"index": "0", "uuid": "GPU-aa1", "name": "A"}, {"index": "1", "uuid": "GPU-aa2", "name": "A"},
        {"index": "2", "uuid": "GPU-bb", "name": "A"}]


@pytest.mark.parametrize("inherited, gpu, row", [
    (None, 1, 1), (None, 3, None), ("2", 0, 2), ("2,0", 1, 0), ("GPU-bb,GPU-aa1", 0, 2), ("GPU-b", 0, 2), ("GPU-aa2", 0, 1),
    ("GPU-aa", 0, None), ("MIG-cc", 0, None), ("", 0, None)])
def test_the_row_of_nvidia_smi_is_that_of_the_gpu_that_is_measured(monkeypatch, inherited, gpu, row):
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if inherited is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", inherited)
    assert gpu_check.row_of_gpu(ROWS, gpu) == (None if row is None else ROWS[row])


def test_numbers_of_unlike_gpus_are_nvidia_smis_only_in_its_order(monkeypatch):
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    rows = [{**ROWS[0], "name": "B"}, *ROWS[1:]]
    assert gpu_check.row_of_gpu(rows, 0) is None
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    assert gpu_check.row_of_gpu(rows, 0) == rows[0]


def test_a_net_is_measured_where_there_is_no_terminal(bundle, monkeypatch):
    root = bundle()
    add_smi(root, BUSY)
    monkeypatch.setattr(gpu_check, "ROOT", root)
    monkeypatch.setenv("PATH", f"{root / 'path'}:{os.environ['PATH']}")

    def refuse():
        raise OSError("out of pty devices")

    monkeypatch.setattr(gpu_check.os, "openpty", refuse)
    options = type("Options", (), {"budget": 0, "gpu": 0, "batch": 8, "iterations": 1, "output": root / "report.json", "cache": root})
    result = gpu_check.net_step("resnet50", "bf16")(gpu_check.Context(options))
    assert result["passed"] and result["clocks"] == {"samples": 0} and "peak_bytes" not in result


SECOND = """
is_first = not os.path.exists(os.environ["CAFFE_ALGORITHM_CACHE"])
    open(os.environ["CAFFE_ALGORITHM_CACHE"], "a").write(" ".join(arguments) + "\\n")
    DOCUMENT.update(plans_proposed=60, plans_built=200) if is_first else DOCUMENT.update(start_seconds=1.25, BUILT)
""".strip()


@pytest.mark.parametrize("built, status", [(0, 0), (3, 1)])
def test_a_second_start_builds_no_plan(bundle, built, status):
    root = bundle(others=SECOND.replace("BUILT", f"plans_built={built}"))
    found, _, report, _ = check(root, "--only", "resnet50 bf16", "second", f"--cache={root / 'cache'}")
    first, second = (report["steps"][name] for name in ("resnet50 bf16", "second start of resnet50 bf16"))
    assert found == status, second
    assert {"start_seconds": 1.25, "plans_proposed": 0, "plans_built": built}.items() <= second.items()
    assert second.get("why") == ("cuDNN built 3 plans again" if built else None)
    assert "plans_built" in first
    assert "--iterations=2" in (root / "cache" / "algorithms.tsv").read_text().splitlines()[-1]


def test_caches_are_given_up_unless_a_folder_is_named(bundle):
    """A hundred files in addition to the report could crowd it out if only a few are copied back."""
    root = bundle(others="open(os.environ['CAFFE_ALGORITHM_CACHE'], 'a').write('x')")
    before = set(root.iterdir())
    assert check(root, "--only", "resnet50 bf16")[0] == 0
    assert {path.name for path in set(root.iterdir()) - before} == {"report.json"}


def test_without_a_first_start_there_is_no_second(bundle):
    status, _, report, _ = check(bundle(), "--only", "second")
    assert status == 0
    assert report["steps"]["second start of resnet50 bf16"]["skipped"] == "no resnet50 bf16 before it"


LENET = """
solver = pathlib.Path(next(argument for argument in arguments if argument.startswith("--solver=")).split("=")[1]).read_text()
    iterations = int(solver.split("max_iter: ")[1].split()[0])
    print("Test net output #0: accuracy =", {2000: 0.9805, 10000: ACCURACY}[iterations])
    sys.exit(0)
""".strip()


def bundle_of_lenet(bundle, accuracy):
    root = bundle(others="import pathlib\n    " + LENET.replace("ACCURACY", str(accuracy)))
    example = root / "share" / "cortado" / "examples" / "mnist"
    example.mkdir(parents=True)
    shutil.copy(ROOT / "examples" / "mnist" / "lenet_solver.prototxt", example)
    (example / "create_mnist.sh").write_text("exit 0\n")
    (root / "libexec" / "cortado" / "make_digits.py").write_text("")
    return root


@pytest.mark.parametrize("accuracy, status", [(0.9895, 1), (0.9908, 0)])
def test_lenet_learns_mnist_to_its_accuracy_with_the_whole_solver(bundle, tmp_path, accuracy, status):
    found, _, report, _ = check(bundle_of_lenet(bundle, accuracy), "--only", "lenet", "--mnist", str(tmp_path))
    assert report["steps"]["lenet"]["accuracy"] == accuracy and report["steps"]["lenet"]["digits"] == "MNIST"
    assert found == status, report["steps"]["lenet"]


def test_lenet_learns_drawn_digits_where_there_is_no_mnist(bundle):
    status, _, report, _ = check(bundle_of_lenet(bundle, 0), "--only", "lenet")
    assert status == 0 and report["steps"]["lenet"]["accuracy"] == 0.9805 and report["steps"]["lenet"]["digits"] == "drawn"


def test_a_test_that_fails_is_run_again_alone(bundle):
    body = f"""if [ "$filter" = Suite.c ]; then
      test "$CUDA_LAUNCH_BLOCKING" = 1 || exit 3
      echo '{json.dumps(report_of(PASSED))}' > $report
    else echo '{json.dumps(report_of(PASSED, FAILED))}' > $report; exit 1; fi"""
    status, lines, _, _ = check(bundle(tests=body), "--only", "conformance")
    assert status == 1
    again = {"test": "Suite.c", "message": "1 is not 2", "alone": "passes"}
    failures = lines[-1]["failures"]
    # One mistake makes many tests fail, and they take time.
    assert len(failures) == gpu_check.SHARDS > gpu_check.RERUN and failures[:gpu_check.RERUN] == [again] * gpu_check.RERUN
    assert all("alone" not in failure for failure in failures[gpu_check.RERUN:])


def test_a_program_that_fails_after_its_tests_fails(bundle):
    """This happens when the libraries of a GPU are unloaded."""
    body = f"echo '{json.dumps(report_of(PASSED))}' > $report; test $GTEST_SHARD_INDEX != 3 || kill -ABRT $$"
    status, lines, _, errors = check(bundle(tests=body), "--only", "conformance")
    assert status == 1 and lines[-1]["why"] == f"shard 4 of {gpu_check.SHARDS}: status -6" and lines[-1]["failures"] == []
    assert f"  shard 4 of {gpu_check.SHARDS}: status -6" in errors.splitlines()


def test_shards_run_at_once_where_the_gpu_takes_several_processes(bundle):
    body = f"""echo '{json.dumps(report_of(PASSED))}' > $report
    echo begin >> $RECORD
    for i in $(seq 300); do if [ $(grep -c begin $RECORD) -ge $WAIT_FOR ]; then break; fi; sleep 0.1; done
    echo end >> $RECORD"""
    root = bundle(tests=body)
    add_smi(root, {**BUSY, "compute_mode": "Default"})
    assert check(root, "--only", "conformance", RECORD=str(root / "together"), WAIT_FOR=str(gpu_check.SHARDS))[0] == 0
    assert (root / "together").read_text().split()[:gpu_check.SHARDS] == ["begin"] * gpu_check.SHARDS
    (root / "path" / "nvidia-smi").unlink()
    (root / "path").rmdir()
    add_smi(root, {**BUSY, "compute_mode": "Exclusive_Process"})
    assert check(root, "--only", "conformance", RECORD=str(root / "alone"), WAIT_FOR="1")[0] == 0
    assert (root / "alone").read_text().split() == ["begin", "end"] * gpu_check.SHARDS


def test_a_test_that_crashes_is_named_and_the_other_shards_count(bundle):
    body = f"""if [ "$GTEST_SHARD_INDEX" = 0 ]; then echo '[ RUN      ] Suite.c'; kill -SEGV $$; fi
    echo '{json.dumps(report_of(PASSED))}' > $report"""
    status, lines, _, _ = check(bundle(tests=body), "--only", "conformance")
    result = lines[-1]
    assert status == 1 and result["ran"] == gpu_check.SHARDS - 1
    assert result["failures"][0]["test"] == "Suite.c" and result["why"] == f"shard 1 of {gpu_check.SHARDS}: status -11"
    assert [one["shard"] for one in result["incomplete"]] == [f"1 of {gpu_check.SHARDS}"]


def test_ours_over_the_faster_one_of_pytorch(tmp_path):
    report = gpu_check.Report(tmp_path / "report.json")
    for name, rate in (("resnet50 bf16", 6000.0), ("torch resnet50 bf16", 3000.0), ("torch resnet50 bf16 compiled", 4000.0)):
        report.end(name, {"passed": True, "images_per_s": rate})
    report.end("vgg16 bf16", {"passed": True, "images_per_s": 1.0})
    assert report.content["over_torch"] == {"resnet50 bf16": 1.5}
    assert json.loads((tmp_path / "report.json").read_text())["over_torch"] == {"resnet50 bf16": 1.5}  # before the end


def test_the_bundle_brings_the_programs_of_all_steps():
    needed = set(re.findall(r'tests_step\("(\w+)"', (ROOT / "scripts" / "caffe-gpu-check").read_text()))
    assert needed == {"conformance_test", "layers_test", "gpu_training_test"}
    installed = re.search(r"caffe-gpu-check runs.*?foreach\(target ([^)]*)\)", (ROOT / "tests" / "CMakeLists.txt").read_text(),
                          re.DOTALL).group(1)
    assert needed == set(installed.split())


BINARIES = pathlib.Path(os.environ.get("CAFFE_BINARY_DIR", ROOT / "build" / "cpu-release"))


@pytest.mark.parametrize("program", ["conformance_test", "layers_test", "cuda_on_host_test"])
def test_the_tests_start_where_the_sources_are_not(program):
    """The bundle has no golden numbers; cases made from them are made when the program starts."""
    if not (BINARIES / "bin" / program).exists():
        pytest.skip(f"no {program} in {BINARIES}")
    hidden = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', ROOT / "tests"]
    if subprocess.run([*hidden, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no namespace of mounts can be made here")
    done = subprocess.run([*hidden, BINARIES / "bin" / program, "--gtest_filter=Gpu/*Absolute*:*NoSuchTest"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_unknown_steps_are_refused(bundle):
    process = start(bundle(), "--only", "resnet5O")
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 2 and "no step begins with resnet5O" in errors


def test_pytorchs_nets_are_those_of_the_prototxts():
    subprocess.run([sys.executable, ROOT / "benchmarks" / "gpu" / "torch_nets.py", "--check"], check=True)


@pytest.mark.parametrize("net, weights", [("alexnet", 60_965_224), ("resnet50", 25_557_032), ("vgg16", 138_357_544)])
def test_pytorchs_nets_have_the_published_number_of_weights(net, weights):
    shapes = json.loads((ROOT / "benchmarks" / "gpu" / "torch_nets" / f"{net}.json").read_text())["weights"]
    count = 0
    for shape in shapes.values():
        product = 1
        for extent in shape:
            product *= extent
        count += product
    assert count == weights


def test_steps_are_timed_in_blocks():
    calls = []
    times = torch_step.measure(lambda: calls.append("step"), lambda: calls.append("wait"), 25)
    assert len(times) == 2
    assert calls == ["step"] * torch_step.WARM_UPS + ["wait"] + (["step"] * 10 + ["wait"]) * 2
    assert torch_step.percentile([3, 1, 2], 0.5) == 2


TORCH = ROOT / "build" / "peer-venv" / "bin" / "python"


COMPILES = pytest.mark.skipif("CAFFE_SLOW_TESTS" not in os.environ,
                              reason="slow: runs with CAFFE_SLOW_TESTS=1 (scripts/test.sh --all)")


@pytest.mark.parametrize("precision, compiled", [("fp32", False), ("bf16", False),
                                                 pytest.param("bf16", True, marks=COMPILES)])
def test_pytorchs_step_starts_without_a_gpu(tmp_path, precision, compiled):
    """Runs the whole program with the optimizer on two images, without NumPy, which PyTorch's wheels do not contain."""
    (tmp_path / "numpy.py").write_text("raise ModuleNotFoundError('no NumPy here', name='numpy')\n")
    without_numpy = {**os.environ, "PYTHONPATH": str(tmp_path)}
    if not TORCH.exists() or subprocess.run([TORCH, "-c", "import torch"], capture_output=True, check=False).returncode:
        pytest.skip(f"no PyTorch in {TORCH}; run benchmarks/peer_environment.sh")
    program = [TORCH, ROOT / "benchmarks" / "gpu" / "torch_step.py", "alexnet", f"--precision={precision}", "--batch=2",
               "--iterations=10", *(["--compile"] if compiled else [])]
    # It says that there is no GPU, which caffe-gpu-check records as skipped.
    refused = subprocess.run(program, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""}, capture_output=True, text=True,
                             check=False)
    assert refused.returncode == 3 and "PyTorch sees no GPU" in refused.stderr
    done = subprocess.run([*program, "--cpu"], env=without_numpy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["net"] == "alexnet" and document["batch"] == 2 and document["precision"] == precision
    assert document["compile"] == compiled and document["p50_ms"] > 0 and document["images_per_s"] > 0
