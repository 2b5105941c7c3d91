"""scripts/stress_tests.sh on tests that pauses break and tests that they do not break."""
import shutil
import subprocess

import pytest

from stress_tree import ROOT, make_tree  # pylint: disable=unused-import

# It wakes every 10 ms, unless it is paused. Its child never wakes.
STAND_IN = """
import subprocess, sys, time

WATCH = '''
import time
last, longest = time.monotonic(), 0
for _ in range(200):
    time.sleep(0.01)
    last, longest = time.monotonic(), max(longest, time.monotonic() - last)
'''

def test_robust():
    subprocess.run([sys.executable, "-c", WATCH], check=True)
    subprocess.run([sys.executable, "-c", WATCH], check=True)

def test_that_trusts_its_clock():
    for _ in range(4):
        space = {}
        exec(WATCH, space)
        assert space["longest"] < 0.1, "it was late"
"""
CPP = """#!/bin/sh
echo "$GTEST_TOTAL_SHARDS $GTEST_SHARD_INDEX $*" >>calls
echo '[  FAILED  ] Timing.IsLate (3 ms)'
exit 1
"""


@pytest.fixture(name="stress")
def run_in_a_tree(tree):
    (tree.root / "tests" / "timing" / "test_stand_in.py").write_text(STAND_IN)

    def run(*arguments):
        done = subprocess.run(tree.command(*arguments), text=True, check=False, env=tree.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=900)
        return done.returncode, done.stdout
    return run


@pytest.mark.parametrize("options, why", [
    (["--rounds", "x"], "--rounds is 'x'; it takes a whole number from 0 up"), (["--seed", "09"], "--seed is '09'"),
    (["--minutes"], "--minutes is ''"), (["--busy", "-3"], "--busy is '-3'")])
def test_what_is_no_number_is_refused(stress, options, why):
    status, said = stress(*options)
    assert status == 2 and said.startswith(why) and said.count("\n") == 1, said


def test_what_pauses_break_is_named(stress):
    status, said = stress("--rounds", "2", "--busy", "1", "stand_in")
    assert status == 1, said
    assert "seed 7: 2 Python tests, all of them in a round, 1 busy processes" in said
    assert "2 rounds in " in said and ", 2 with a failure, seed 7" in said
    assert said.splitlines()[-1].split(maxsplit=1) == ["2", "FAILED tests/timing/test_stand_in.py::test_that_trusts_its_clock"]


def test_what_pauses_do_not_break_passes(stress):
    status, said = stress("--rounds", "1", "--busy", "0", "robust")
    assert status == 0 and "round 0: passed in " in said and "1 rounds in " in said, said


def test_five_rounds_run_each_test_once(stress, tmp_path):
    tests = "".join(f"def test_{i}():\n    open({str(tmp_path / 'ran')!r}, 'a').write('{i} ')\n\n" for i in range(7))
    (tmp_path / "tests" / "timing" / "test_stand_in.py").write_text(tests)
    status, said = stress("--rounds", "10", "--busy", "0")
    assert status == 0 and "7 Python tests, a fifth of them in a round" in said, said
    ran = (tmp_path / "ran").read_text().split()
    assert sorted(ran[:7]) == sorted(ran[7:]) == list("0123456") and ran[:7] != ran[7:]


def test_the_program_of_cpp_tests_runs_too(stress, tmp_path):
    program = tmp_path / "build" / "bin" / "timing_test"
    program.parent.mkdir(parents=True)
    program.write_text(CPP)
    program.chmod(0o755)
    status, said = stress("--rounds", "2", "--busy", "0", "Late", "Other")
    assert status == 1 and said.splitlines()[-1].split(maxsplit=1) == ["2", "[  FAILED  ] Timing.IsLate"], said
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls == ["1 0 --gtest_filter=*Late*:*Other* --gtest_color=no"] * 2


def test_no_round_begins_too_late(stress):
    status, said = stress("--minutes", "0", "--busy", "0")
    assert status == 0 and "0 rounds in " in said, said


@pytest.mark.parametrize("arguments", [["--round=1"], ["no_such_test"]])
def test_what_cannot_be_run_is_refused(stress, arguments):
    status, said = stress(*arguments)
    assert status != 0 and ("see --help" in said or "no test has no_such_test" in said), said


def test_a_file_that_cannot_be_imported_is_named(stress, tmp_path):
    (tmp_path / "tests" / "timing" / "test_broken.py").write_text("import no_such_module\n")
    status, said = stress("--rounds", "1", "--busy", "0")
    assert status == 1 and "no_such_module" in said and "test_broken.py" in said, said
    assert "round 0" not in said


@pytest.mark.parametrize("reason, why", [
    ("caffe is not built in bin", "FAILED tests/timing/test_stand_in.py::test_it"), ("no data", "FAILED no test has passed")])
def test_a_run_of_which_all_is_skipped_fails(stress, tmp_path, reason, why):
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path / "tests")
    (tmp_path / "build" / "python" / "caffe").mkdir(parents=True)
    (tmp_path / "build" / "python" / "caffe" / "_caffe.so").touch()
    (tmp_path / "tests" / "timing" / "test_stand_in.py").write_text(
        f"import pytest\ndef test_it():\n    pytest.skip({reason!r})\n")
    status, said = stress("--rounds", "1", "--busy", "0", "test_it")
    assert status == 1 and why in said, said


def test_settings_of_pytest_above_the_clone_have_no_say(tree, tmp_path_factory):
    above = tmp_path_factory.mktemp("above")
    (above / "pytest.ini").write_text("[pytest]\npython_functions = check_*\n")
    (above / "conftest.py").write_text("raise RuntimeError('read')\n")
    (tree.root / "tests" / "timing" / "test_stand_in.py").write_text("def test_it():\n    pass\n")
    tree.root = tree.root.rename(above / "clone")
    done = subprocess.run(tree.command("--rounds", "1", "--busy", "0", "test_it"), text=True, check=False, env=tree.environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0 and "1 Python tests" in done.stdout, done.stdout
