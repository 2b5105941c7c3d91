"""Runs tests/fuzz/python_api.py for some seconds, and checks that it detects planted defects."""
import os
import subprocess
import sys

import pytest

from built_package import PACKAGE, ROOT


def fuzz(*arguments):
    return subprocess.run([sys.executable, ROOT / "tests" / "fuzz" / "python_api.py", *map(str, arguments)], text=True,
                          stdout=subprocess.PIPE, timeout=120, env={**os.environ, "PYTHONPATH": str(PACKAGE)})


def test_random_calls_end_in_answers_and_exceptions():
    done = fuzz("--calls", 10000, "--seconds", 20)
    assert done.returncode == 0, done.stdout
    assert "returned" in done.stdout and "InvalidArgument" in done.stdout


@pytest.mark.parametrize("planted, named", [("crash", "status -11"), ("hang", "takes more than 10 s"), ("exit", "status 0"),
                                            ("system_error", "SystemError: planted")])
def test_what_goes_wrong_is_found(planted, named, tmp_path):
    done = fuzz("--calls", 100, "--plant", planted, "--found", tmp_path)
    assert done.returncode == 1 and named in done.stdout and f"planted {planted}" in (tmp_path / "calls").read_text()
