"""Runs the Python tests of a proof for scripts/run_proofs.py, and failed tests once more."""
import dataclasses
import os
import subprocess
import xml.etree.ElementTree

import process_groups
import run_cpp_tests
from proofs import ROOT

# Seconds after which pytest or a command is killed, unless its proof is longer. A test that takes a third of that is
# shown with its stack.
LEAST_LIMIT = 1800


@dataclasses.dataclass
class Results:
    """Counts of tests, the names of those that failed, and of those that failed but passed when run again."""
    passed: int = 0
    skipped: int = 0
    failed: list = dataclasses.field(default_factory=list)
    unstable: list = dataclasses.field(default_factory=list)


def interpreter(proof):
    """The Python for a proof's tests, or None."""
    if proof.interpreter:
        python = ROOT / "build" / f"{proof.interpreter}-venv" / "bin" / "python"
        return str(python) if python.exists() else ""
    return subprocess.run(["bash", "-c", ". scripts/common.sh; find_python pytest numpy lmdb google.protobuf caffe"], cwd=ROOT,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "build" / "cpu-release" / "python")}, check=False, text=True,
                          stdout=subprocess.PIPE).stdout.strip()


def limit_of(proof):
    return max(LEAST_LIMIT, 4 * 60 * proof.minutes)


def has_xdist(python):
    return subprocess.run([python, "-c", "import xdist"], check=False, capture_output=True).returncode == 0


def run(python, proof, environment, jobs):
    """Runs the files of a proof, several at once if pytest-xdist is installed."""
    is_parallel = jobs > 1 and not proof.timing and has_xdist(python)
    options = ["-n", str(jobs), "--dist", "loadfile"] if is_parallel else []
    results = run_once(python, proof, environment, options + proof.python_files())
    named = [name for name in results.failed if "::" in name]
    for name in named if len(named) <= run_cpp_tests.MAY_RUN_AGAIN else ():
        again = (run_once(python, proof, environment, [name]) for _ in range(2 if proof.timing else 1))
        if any(results.passed and not results.failed for results in again):
            results.unstable.append(name)
            if proof.timing:
                results.failed.remove(name)
                results.passed += 1
    return results


def run_once(python, proof, environment, arguments):
    report = ROOT / "build" / "pytest" / f"{proof.name}.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    command = [python, "-m", "pytest", "-q", "-rsfE", "-p", "no:cacheprovider", "-c", str(ROOT / "pyproject.toml"),
               f"--rootdir={ROOT}", "-o", "junit_family=xunit1",
               "-o", f"faulthandler_timeout={LEAST_LIMIT // 3}", f"--junitxml={report}"]
    status = process_groups.run(command + arguments, limit_of(proof), cwd=ROOT, env=environment)
    if status is None:
        return Results(failed=[f"pytest took longer than {limit_of(proof):.0f} s"])
    if not report.exists():
        return Results(failed=[f"pytest ended with status {status} and without a report"])
    results = read(report)
    if status not in (0, 1) or (status and not results.failed):  # 1: it ran all tests, and some failed
        results.failed.append(f"pytest ended with status {status}")
    return results


def read(report):
    results = Results()
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            results.failed.append(node_id(case))
        elif case.find("skipped") is not None:
            results.skipped += 1
        else:
            results.passed += 1
    results.failed = list(dict.fromkeys(results.failed))
    return results


def node_id(case):
    """pytest's name of a test in a report."""
    file, module = case.get("file", ""), case.get("classname", "")
    if not file:
        return f"{module}.{case.get('name')}"
    inside = module.removeprefix(file.removesuffix(".py").replace("/", ".")).lstrip(".")
    return "::".join(filter(None, (file, *inside.split("."), case.get("name"))))
