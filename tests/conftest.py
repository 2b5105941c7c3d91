"""Chooses the package `caffe` that the tests import: that of a build, otherwise the part that needs no compiled module.

Tests of programs that are not built are skipped, but fail if scripts/run_proofs.py runs them, because it has built everything.
"""
import os
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILT = pathlib.Path(os.environ.get("CAFFE_BINARY_DIR", ROOT / "build" / "cpu-release")).resolve() / "python"

if list((BUILT / "caffe").glob("_caffe*.so")):
    sys.path.insert(0, str(BUILT))
else:
    sys.path.insert(0, str(ROOT / "scripts"))
    import caffe_definitions

    caffe_definitions.provide()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport():
    report = (yield).get_result()
    if report.skipped and os.environ.get("CAFFE_TESTS_NEED_BUILD"):
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        if re.search(r"is not built|holds no build", why):
            report.outcome, report.longrepr = "failed", f"{why}, and these tests must not be skipped"
