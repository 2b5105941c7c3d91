"""Tests that read clocks, send signals or watch processes that die; run alone, one at a time: CONTRIBUTING.md."""
import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "smoke"), str(TESTS / "scripts")]  # shares their helpers and fixtures

# pylint: disable=wrong-import-position, unused-import
from programs import database, program, run, solver, workplace  # noqa: E402, F401
from ranks import no_rank_is_left  # noqa: E402, F401
