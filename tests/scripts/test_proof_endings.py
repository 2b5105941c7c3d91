"""scripts/run_proofs.py: a proof that did not run, ended badly or changed meanwhile has not passed."""
import shutil

import pytest

from proofs_tree import NINJA, ROOT, TABLE, commit, deep, make_tree, run, write  # pylint: disable=unused-import


def summary_of(said):
    return said.split("== summary")[1]


def make_cpp(tree, listing):
    """A build of quick_test, whose tests ctest reads from `listing`."""
    write(tree, "tests/proofs.toml", TABLE.replace("python = ", 'cpp = ["quick", "other"]\n# '))
    (tree / "tests" / "quick" / "test_one.py").unlink()
    write(tree, "tests/quick/a_test.cpp", "")
    write(tree, "tests/other/a_test.cpp", "")
    write(tree, "build/cpu-release/CTestTestfile.cmake", listing)


def test_a_proof_of_which_all_is_skipped_fails(tree):
    write(tree, "tests/quick/test_one.py", "import pytest\ndef test_it():\n    pytest.skip('no data')\n")
    status, said = run(tree)
    assert status == 1 and "FAILED quick: no Python test ran; all were skipped" in summary_of(said)


def test_what_is_not_built_fails_by_name(tree):
    shutil.copy(ROOT / "tests" / "conftest.py", tree / "tests")
    write(tree, "build/cpu-release/python/caffe/_caffe.so", "")
    write(tree, "tests/quick/test_one.py",
          "import pytest\ndef test_passes():\n    pass\n"
          "def test_it():\n    pytest.skip('caffe is not built in bin')\n@pytest.mark.skip\ndef test_skipped():\n    pass\n")
    status, said = run(tree)
    assert status == 1 and "FAILED quick: tests/quick/test_one.py::test_it" in summary_of(said)
    assert said.endswith("1 passed, 1 failed, 1 skipped\n")


def test_a_folder_without_a_test_that_ran_fails(tree):
    make_cpp(tree, 'add_test("quick/one" true)\nadd_test("other_test_NOT_BUILT" other_test_NOT_BUILT)\n')
    status, said = run(tree)
    assert status == 1 and "FAILED quick: no C++ test of tests/other ran" in summary_of(said)


def test_programs_that_are_missing_do_not_count_below_nothing(tree):
    make_cpp(tree, 'add_test("quick/one" missing_test)\nadd_test("other/one" missing_test)\n')
    status, said = run(tree)
    assert status == 1 and "FAILED quick: quick/one" in said and "\n0 passed, " in said


def test_an_interrupted_pytest_is_not_forgiven(tree):
    """A failed test that passes when it runs again does not excuse tests that were never reached."""
    write(tree, "tests/quick/test_one.py", """import pathlib
def test_again():
    first = not pathlib.Path("seen").exists()
    pathlib.Path("seen").touch()
    assert not first
def test_interrupts():
    raise KeyboardInterrupt
def test_that_is_not_reached():
    pass
""")
    write(tree, "tests/proofs.toml", TABLE + "timing = true\n")
    status, said = run(tree)
    assert status == 1 and "FAILED quick: pytest ended with status 2" in summary_of(said)


def test_what_is_skipped_on_repetition_has_not_passed(tree):
    write(tree, "tests/quick/test_one.py", """import pathlib, pytest
def test_again():
    if pathlib.Path("seen").exists():
        pytest.skip("once")
    pathlib.Path("seen").touch()
    assert False
""")
    write(tree, "tests/proofs.toml", TABLE + "timing = true\n")
    status, said = run(tree)
    assert status == 1 and "FAILED quick: tests/quick/test_one.py::test_again" in summary_of(said)


def test_a_command_has_a_time_limit(tree):
    """The limit is half a second here."""
    script = tree / "scripts" / "run_pytest.py"
    script.write_text(script.read_text().replace("LEAST_LIMIT = 1800", "LEAST_LIMIT = 0.5"))
    write(tree, "tests/proofs.toml", TABLE + deep("slow", "src", 0, command=["sleep", "600"]))
    status, said = run(tree, "slow")
    assert status == 1 and "FAILED slow: sleep 600 took longer than 0 s" in summary_of(said)


def test_a_command_that_is_missing_is_named(tree):
    write(tree, "tests/proofs.toml", TABLE + deep("gone", "src", command=["./gone.sh"]) + deep("good", "src"))
    status, said = run(tree, "gone", "good")
    assert status == 1 and "FAILED gone: [Errno 2] No such file or directory: './gone.sh'" in summary_of(said)
    assert said.endswith("1 passed, 1 failed, 0 skipped\n")


def test_a_build_that_fails_is_not_tried_again(tree):
    write(tree, "build/programs/ninja", NINJA.replace("echo", "echo >>tries.log; exit 1; echo"))
    write(tree, "tests/proofs.toml", TABLE + TABLE.replace('"quick"', '"second"'))
    status, said = run(tree)
    assert status == 1 and summary_of(said).count("FAILED build cpu-release") == 1
    assert "FAILED  second" in said and (tree / "tries.log").read_text() == "\n"


@pytest.mark.parametrize("options", [["quick", "--depth", "15"], ["--all", "--depth", "15"], ["quick", "--all"]])
def test_what_would_be_left_out_silently_is_refused(tree, options):
    status, said = run(tree, *options)
    assert status == 2 and "NAME, --depth and --all choose what runs; give one of them" in said


@pytest.mark.parametrize("command, why", [
    ("git -c user.name=a -c user.email=a@b commit -q --allow-empty -m later", "and is not now"),
    ("touch src/new.cpp", "needs a clean work tree")])
def test_nothing_is_recorded_for_a_tree_that_has_changed(tree, command, why):
    write(tree, "tests/proofs.toml", TABLE + deep("good", "src", command=command.split()))
    commit(tree)
    status, said = run(tree, "good", "--record")
    assert status == 1 and "FAILED nothing was recorded: " in said and why in said
    assert not (tree / "tests" / "proofs.passed").exists()


def test_a_commit_that_is_not_known_refuses_the_record(tree):
    shutil.rmtree(tree / ".git")
    status, said = run(tree, "quick", "--record", GIT_CEILING_DIRECTORIES=str(tree.parent))
    assert status == 1 and "--record needs git, which says: fatal: not a git repository" in said and "== quick" not in said


def test_the_record_is_read_before_anything_runs(tree):
    write(tree, "tests/proofs.passed", "good\n")
    commit(tree)
    status, said = run(tree, "quick", "--record")
    assert status == 1 and "tests/proofs.passed:1: a line has a proof" in said and "== quick" not in said


def test_settings_of_pytest_above_the_clone_have_no_say(tree, tmp_path_factory):
    above = tmp_path_factory.mktemp("above")
    (above / "pytest.ini").write_text("[pytest]\npython_functions = check_*\n")
    (above / "conftest.py").write_text("raise RuntimeError('read')\n")
    status, said = run(tree.rename(above / "clone"))
    assert status == 0 and said.endswith("1 passed, 0 failed, 0 skipped\n"), said
