"""caffe._log_ends: the last lines of logs."""
import pytest

from caffe._log_ends import end_of, last_words


@pytest.mark.parametrize("text, words", [
    ("", ""), ("\n \n", ""), ("one\ntwo\n\n", "two"), ("I1130 01:14:57.106088  5246 solver.cpp:18] Iteration 1\n", "Iteration 1"),
    ("E1130 01:14:57.1 5 a.hpp:1] caffe: a:1: no 'x'\n  x: 1\n  ^\n", "caffe: a:1: no 'x'"), ("Traceback:\n  File\nRuntimeError: no [1] x\n", "RuntimeError: no [1] x")])
def test_last_words(text, words):
    assert last_words(text) == words


def test_the_end_of_a_file(tmp_path):
    (tmp_path / "log").write_bytes(b"one\ntwo\xff")
    assert end_of(tmp_path / "log", 4) == "two\ufffd" and end_of(tmp_path / "missing") == end_of(tmp_path) == ""
