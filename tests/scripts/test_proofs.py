"""scripts/test.sh: the proofs that run for a change, their order, and the handling of tests that fail or never end."""
import datetime
import os
import subprocess
import sys

import pytest

from proofs_tree import (  # pylint: disable=unused-import
    NINJA, ROOT, TABLE, command_of, commit, deep, environment_of, make_tree, run, write)

sys.path.insert(0, str(ROOT / "scripts"))
import build_preset  # noqa: E402  pylint: disable=wrong-import-position
import proofs  # noqa: E402  pylint: disable=wrong-import-position


def test_this_repository_has_a_proof_for_every_test_and_every_folder():
    table = proofs.load()
    assert not list(proofs.unclaimed(table))
    # The depth of a submission has fifteen minutes; longer proofs never run there.
    assert [proof.name for proof in table if proof.part == "depth" and proof.minutes > 15 and not proof.slow] == []


def test_the_script_shows_its_plan_and_its_options():
    def said(*options):
        return subprocess.run(["bash", ROOT / "scripts" / "test.sh", *options], text=True, check=False, capture_output=True,
                              stdin=subprocess.DEVNULL)

    assert said("--plan", "--depth", "15").stdout.startswith("gate: ")
    assert "--depth MINUTES" in said("--help").stdout
    wrong = said("--plan", "--preset", "asan")
    assert wrong.returncode == 2 and "unrecognized arguments: --preset" in wrong.stderr


@pytest.mark.parametrize("options, why", [
    (["--depth", "-5"], "'-5' is not a number of minutes from 0 up"), (["--depth", "nan"], "'nan' is not a number of minutes"),
    (["--depth", "long"], "'long' is not a number of minutes"), (["--dept", "15"], "unrecognized arguments: --dept")])
def test_options_that_would_choose_something_else_are_refused(tree, options, why):
    status, said = run(tree, "--plan", *options)
    assert status == 2 and why in said, said


def test_the_gate_runs_by_itself(tree):
    status, said = run(tree)
    assert status == 0, said
    assert said.endswith("1 passed, 0 failed, 0 skipped\n")


@pytest.mark.parametrize("path, text", [
    ("tests/quick/some_test.cpp", "tests/quick/some_test.cpp is run by no proof of tests/proofs.toml; a row's cpp"),
    ("tests/other/test_two.py", "tests/other/test_two.py is run by no proof"),
    ("tests/fuzz/png_fuzz.cpp", "tests/fuzz/png_fuzz.cpp is run by no proof"),
    ("scripts/new.sh", None)])
def test_a_test_that_nothing_runs_is_an_error(tree, path, text):
    write(tree, "tests/proofs.toml", TABLE + deep("scripts", "scripts"))
    write(tree, path, "")
    status, said = run(tree, "--plan")
    assert (status != 0) == (text is not None), said
    assert text is None or text in said


def test_a_folder_that_nothing_proves_is_an_error(tree):
    assert run(tree, "--plan")[0] == 0
    write(tree, "src/caffe/quantum/gate.cpp", "")
    status, said = run(tree, "--plan")
    assert status != 0 and "src/caffe/quantum/ calls for no proof of tests/proofs.toml; a row's folders have to name it" in said


@pytest.mark.parametrize("row, text", [
    ('part = "later"', "there are gate and depth"), ('minutes = "a"\nmissing', "tests/proofs.toml"),
    ('part = "gate"\ncolour = "red"', "colour"), ('part = "gate"\nfolders = ["nowhere"]', "names nowhere, which is not there")])
def test_a_mistake_in_the_table_is_named(tree, row, text):
    write(tree, "tests/proofs.toml", f'{TABLE}\n[[proof]]\nname = "wrong"\n{row}\n' +
          ("" if "minutes" in row else "minutes = 1\n") + ("" if "folders" in row else "folders = []\n"))
    status, said = run(tree, "--plan")
    assert status != 0 and text in said and "Traceback" not in said


def test_a_change_goes_before_age(tree):
    """Within both groups the oldest comes first; a proof whose commit is unknown here counts as changed."""
    write(tree, "tests/proofs.toml", TABLE + deep("old", "src/caffe/old") + deep("young", "src/caffe/young") +
          deep("changed", "src/caffe/net") + deep("elsewhere", "src/caffe/young") + deep("scripts", "scripts") +
          deep("months", "src/caffe/net", 90) + "slow = true\n")
    for folder in ("old", "young"):
        write(tree, f"src/caffe/{folder}/a.cpp", "")
    base = commit(tree)
    write(tree, "tests/proofs.passed", f"old {base} 2026-01-01\nyoung {base} 2026-02-01\nchanged {base} 2026-03-01\n"
          f"elsewhere {'a' * 40} 2026-03-02\nscripts {base} 2026-03-03\n")
    write(tree, "src/caffe/net/net.cpp", "// changed")
    status, said = run(tree, "--plan", "--depth", "12")
    assert status == 0
    assert [line.split()[:2] for line in said.splitlines() if line.startswith("  ")] == [
        ["runs", "changed"], ["runs", "elsewhere"], ["runs", "old"], ["waits", "young"], ["waits", "scripts"],
        ["--all", "months"]]
    assert f"changed (4 min): src/caffe/net has changed since {base[:10]}" in said
    assert f"elsewhere (4 min): passed at {'a' * 10}, which is not in this clone" in said
    assert "old (4 min): is unchanged since it passed on 2026-01-01" in said


def test_the_depth_runs_what_its_time_allows(tree):
    write(tree, "tests/proofs.toml", TABLE + deep("long", "src", 20) + deep("short", "scripts"))
    status, said = run(tree, "--depth", "15")
    assert status == 0, said
    assert "passed  short" in said and "passed  long" not in said
    assert "long waits for another run: it takes 20 of 15 minutes" in said


def test_all_runs_all_and_names_run_alone(tree):
    write(tree, "tests/proofs.toml", TABLE + deep("long", "src", 20) + deep("bad", "scripts", command=["false"]))
    status, said = run(tree, "--all")
    assert status == 1
    assert "passed  long" in said and "FAILED  bad" in said and said.endswith("2 passed, 1 failed, 0 skipped\n")
    status, said = run(tree, "long")
    assert status == 0 and said.startswith("asked for: long (20 min)\n") and "quick" not in said
    status, said = run(tree, "lnog")
    assert status != 0 and "no proof is called lnog; there are quick, long, bad" in said


def test_passes_are_recorded_for_a_commit(tree):
    write(tree, "tests/proofs.toml", TABLE + deep("good", "src") + deep("bad", "scripts", command=["false"]))
    status, said = run(tree, "--all", "--record")
    assert status != 0 and "needs a clean work tree" in said
    head = commit(tree)
    assert run(tree, "--all", "--record")[0] == 1
    words = [line.split() for line in (tree / "tests" / "proofs.passed").read_text().splitlines()[1:]]
    assert [line[:2] for line in words] == [["quick", head], ["good", head]]
    assert all(datetime.date.fromisoformat(date) for _, _, date in words)
    commit(tree)
    assert "good (4 min): is unchanged since it passed" in run(tree, "--plan")[1]
    write(tree, "tests/proofs.passed", "good\n")
    assert "tests/proofs.passed:1: a line has a proof, a commit and a date" in run(tree, "--plan")[1]


def test_git_variables_of_the_caller_have_no_say(tmp_path_factory, monkeypatch, request):
    """Hooks and `git rebase -x` set GIT_DIR to the contributor's own repository."""
    other = tmp_path_factory.mktemp("other")
    subprocess.run(["git", "init", "-q", "--bare", other], check=True)
    before = sorted(other.rglob("*"))
    (other / "config of a user").write_text("[commit]\n\tgpgsign = true\n[gpg]\n\tprogram = false\n")
    monkeypatch.setenv("GIT_DIR", str(other))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(other / "config of a user"))
    tree = request.getfixturevalue("tree")
    write(tree, "tests/proofs.toml", TABLE + deep("good", "src"))
    head = commit(tree)
    assert run(tree, "good", "--record", GIT_DIR=str(other))[0] == 0
    assert f"good {head} " in (tree / "tests" / "proofs.passed").read_text()
    (other / "config of a user").unlink()
    assert sorted(other.rglob("*")) == before


def test_programs_of_the_depth_are_not_built_for_the_gate(tree):
    write(tree, "tests/deep/a_test.cpp", "")
    write(tree, "tests/proofs.toml", TABLE + deep("deep", "src", cpp=["deep"]))
    assert run(tree)[0] == 0
    assert (tree / "ninja.log").read_text().split()[4:] == ["bin/quick_test"]


ONCE = """import pathlib
def test_again():
    first = not pathlib.Path("seen").exists()
    pathlib.Path("seen").touch()
    assert not first
"""


def test_a_test_that_passes_on_repetition_is_named_and_fails(tree):
    write(tree, "tests/quick/test_one.py", ONCE)
    status, said = run(tree)
    assert status == 1
    assert "note: unstable: tests/quick/test_one.py::test_again failed, then passed when it ran again, which counts" in said


def test_in_the_tests_of_timing_it_is_only_named(tree):
    write(tree, "tests/quick/test_one.py", ONCE)
    write(tree, "tests/proofs.toml", TABLE + "timing = true\n")
    status, said = run(tree)
    assert status == 0, said
    assert "note: unstable: tests/quick/test_one.py::test_again failed, then passed when it ran again\n" in said


@pytest.mark.parametrize("text, why", [
    ("import os\ndef test_it():\n    os._exit(0)\n", "without a report|test_it|status"),
    ("raise RuntimeError('no such data')\n", "test_one"),
    ("", "pytest ended with status 5")])
def test_tests_that_do_not_come_to_their_end_have_failed(tree, text, why):
    write(tree, "tests/quick/test_one.py", text)
    status, said = run(tree)
    assert status == 1
    assert any(part in said.split("== summary")[1] for part in why.split("|")), said


def test_a_build_that_fails_fails_what_needs_it(tree):
    write(tree, "build/programs/ninja", NINJA.replace("echo", "false; exit 1; echo"))
    status, said = run(tree)
    assert status == 1 and "FAILED build cpu-release" in said and "FAILED  quick" in said


def test_only_cores_that_may_be_used_are_used(tree):
    core = min(os.sched_getaffinity(0))
    done = subprocess.run(["taskset", "--cpu-list", str(core), *command_of(tree)], cwd=tree, env=environment_of(tree),
                          check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert " -j 1 " in (tree / "ninja.log").read_text(), done.stdout


def test_compilers_have_the_memory_that_they_need():
    gigabyte = 1 << 30
    assert [build_preset.compilers_at_once(*machine) for machine in
            ((2, 24 * gigabyte), (16, 8 * gigabyte), (1, 64 * gigabyte), (4, gigabyte))] == [2, 4, 1, 1]
