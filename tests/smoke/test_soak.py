"""Runs tests/soak/soak.py for twenty seconds, and tests its verdict on runs that grow."""
import importlib.util
import pathlib
import subprocess
import sys

import pytest
from programs import BINARIES, need_program

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "soak" / "soak.py"


@pytest.fixture(scope="module", name="soak")
def soak_module():
    spec = importlib.util.spec_from_file_location("soak", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["soak"] = module  # required by dataclasses
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("workers", [1, 2])
def test_short_soak(workers):
    need_program("caffe")
    done = subprocess.run([sys.executable, SCRIPT, f"--hours={20 / 3600}", f"--binaries={BINARIES}", f"--workers={workers}"],
                          text=True, capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    # On a busy machine there are fewer samples than one per second; with less than eight the script gives no verdict.
    assert len(done.stdout.splitlines()) > 8


def samples(soak, **grown):
    """A hundred samples; `grown` gives, by name, the growth of a number per sample."""
    start = {"resident": 150.0, "anonymous": 60.0, "descriptors": 7, "threads": 5}
    values = [{name: value + grown.get(name, 0) * number for name, value in start.items()} for number in range(100)]
    return [soak.Sample(seconds=number, iteration=grown.get("iteration", 500) * number, **one)
            for number, one in enumerate(values)]


def test_flat_runs_are_no_problem(soak):
    assert soak.problems(samples(soak)) == []


@pytest.mark.parametrize("name, step", [("resident", 1.0), ("anonymous", 1.0), ("descriptors", 0.1), ("threads", 0.02)])
def test_growth_is_one(name, step, soak):
    found = soak.problems(samples(soak, **{name: step}))
    assert len(found) == 1 and found[0].startswith(f"{name} grew from")


def test_standing_still_is_one(soak):
    assert "no progress" in soak.problems(samples(soak, iteration=0))[0]
