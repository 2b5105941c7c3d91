"""scripts/run_cpp_tests.py runs a program's cases in one process, and a crash hides none of them."""
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Prints like GoogleTest. A case's name determines what it does.
PROGRAM = """#!{python}
import os, pathlib, subprocess, sys, time
flags = [word.split("=")[1] for word in sys.argv if word.startswith("--gtest_flagfile=")]
is_alone = not flags
cases = (pathlib.Path(flags[0]).read_text().strip() if flags else sys.argv[1]).split("=")[1].split(":")
with open("processes", "a") as file:
    file.write(" ".join(cases) + "\\n")
status = 0
for case in cases:
    if "NeverBegins" in case:
        continue
    print(f"[ RUN      ] {{case}}", flush=True)
    if case.endswith("Crashes") or (case.endswith("CrashesOnce") and not is_alone):
        os.abort()
    if case.endswith("ShowsHowThreadsWait"):
        (pathlib.Path.cwd() / "wait_policy").write_text(os.environ.get("OMP_WAIT_POLICY", ""))
    if "Races" in case:
        print("SUMMARY: ThreadSanitizer: data race a.cpp:1 in Add", flush=True)
    if "Hangs" in case:
        time.sleep(600)
    has_failed = "Fails" in case and not (("Once" in case or "Then" in case) and is_alone)
    is_skipped = "IsSkipped" in case and not has_failed
    result = "  FAILED  " if has_failed else "  SKIPPED " if is_skipped else "       OK "
    status |= has_failed or "EndsWithOne" in case
    print(f"words without an end of line[{{result}}] {{case}} (0 ms)", flush=True)
if "CrashesAtTheEnd" in str(cases):
    os.abort()
if "LeavesAProcess" in str(cases):  # in a group of its own, so that no signal to this one's reaches it
    subprocess.Popen(["sleep", "50"], start_new_session="OfItsOwn" in str(cases))
if "EndsQuietly" not in str(cases):
    print(f"[==========] {{len(cases)}} tests ran.")
sys.exit(status)
"""

# Seconds from the start of a case.
LIMITS = {"A.Hangs": 1, "A.LeavesAProcess": 2, "A.LeavesAProcessOfItsOwn": 2}


@pytest.fixture
def run(tmp_path):
    program = tmp_path / "some_test"
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)

    def run(*cases, other=(), options=()):
        text = "".join(f'add_test("some/{case}" "{program}" "--gtest_filter={case}")\n'
                       f'set_tests_properties("some/{case}" PROPERTIES TIMEOUT {LIMITS.get(case, 300)} WORKING_DIRECTORY "{tmp_path}")\n'
                       for case in cases)
        text += "".join(f'add_test("other/{name}" {command})\n' for name, command in other)
        (tmp_path / "CTestTestfile.cmake").write_text(text)
        command = [ROOT / "scripts" / "run_cpp_tests.py", tmp_path, "--jobs", "1", *options]
        done = subprocess.run(command, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        processes = tmp_path / "processes"
        return done.returncode, done.stdout, processes.read_text().splitlines() if processes.exists() else []

    return run


@pytest.mark.parametrize("set_by_user, seen", [(None, "passive"), ("active", "active")])
def test_threads_leave_the_processor_to_the_program_beside(run, monkeypatch, tmp_path, set_by_user, seen):
    """Two programs whose threads wait in loops take five times as long on two processors."""
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    if set_by_user:
        monkeypatch.setenv("OMP_WAIT_POLICY", set_by_user)
    assert run("A.ShowsHowThreadsWait")[0] == 0
    assert (tmp_path / "wait_policy").read_text() == seen


def test_cases_share_a_process(run):
    status, output, processes = run("A.One", "A.Two", "Types/A.Three/0")
    assert (status, len(processes)) == (0, 1), output
    assert output.splitlines()[-1] == "3 ran, 0 skipped, 0 failed"


def test_a_crash_is_named_and_hides_no_other_case(run):
    status, output, processes = run("A.One", "A.Crashes", "A.Two", "A.Fails")
    assert status == 1
    assert processes == ["A.One A.Crashes A.Two A.Fails", "A.Two A.Fails", "A.Crashes", "A.Fails"]  # these run again
    assert "failed: some/A.Crashes: ended with SIGABRT" in output
    assert output.splitlines()[-3:] == ["FAILED some/A.Crashes", "FAILED some/A.Fails", "4 ran, 0 skipped, 2 failed"]


def test_a_case_has_its_own_time_limit(run):
    status, output, _ = run("A.One", "A.Hangs", "A.Two")  # the first limit counts from the program's start
    assert status == 1 and "failed: some/A.Hangs: took longer than its time limit" in output
    assert output.splitlines()[-1] == "3 ran, 0 skipped, 1 failed"


@pytest.mark.parametrize("case", ["A.LeavesAProcess", "A.LeavesAProcessOfItsOwn"])
def test_what_keeps_the_output_open_does_not_outlast_the_limit(run, case):
    status, output, _ = run("A.One", case)
    assert status == 1 and ": took longer than its time limit" in output
    assert output.splitlines()[-1] == "2 ran, 0 skipped, 1 failed"


def test_skipped_cases_are_counted(run):
    status, output, _ = run("A.One", "A.IsSkipped")
    assert (status, output.splitlines()[-1]) == (0, "1 ran, 1 skipped, 0 failed")


def test_a_disabled_case_is_named_as_skipped(run):
    disabled = "true)\nset_tests_properties(other/old PROPERTIES DISABLED TRUE"
    status, output, _ = run("A.One", other=[("old", disabled)])
    assert status == 0 and "skipped: other/old, which is disabled\n" in output
    assert output.splitlines()[-1] == "1 ran, 1 skipped, 0 failed"


def test_a_case_that_never_begins_has_failed(run):
    status, output, _ = run("A.One", "A.NeverBegins")
    assert status == 1 and "failed: some/A.NeverBegins: did not run" in output


def test_a_crash_behind_the_last_case_is_a_failure(run):
    status, output, _ = run("A.One", "A.CrashesAtTheEnd")
    assert status == 1 and "some_test: ended with SIGABRT after its last test" in output
    assert output.splitlines()[-1] == "2 ran, 0 skipped, 1 failed"


def test_what_a_sanitizer_reports_is_a_failure_of_the_case(run):
    status, output, _ = run("A.One", "A.Races", "A.Two")
    assert status == 1 and "failed: some/A.Races: SUMMARY: ThreadSanitizer: data race a.cpp:1 in Add" in output
    assert output.splitlines()[-1] == "3 ran, 0 skipped, 1 failed"


def test_an_end_without_a_summary_is_a_failure(run):
    """A case that calls exit(0) would hide itself and the cases after it."""
    status, output, _ = run("A.One", "A.EndsQuietly")
    assert status == 1 and "some_test: ended without GoogleTest's summary" in output


def test_a_case_that_passes_on_repetition_is_unstable_and_fails(run):
    status, output, _ = run("A.One", "A.FailsOnce")
    assert status == 1
    assert output.endswith("UNSTABLE some/A.FailsOnce\nFAILED some/A.FailsOnce\n2 ran, 0 skipped, 1 failed\n")


def test_among_the_tests_of_timing_it_is_only_named(run):
    status, output, _ = run("A.One", "A.FailsOnce", "A.Fails", options=["--timing"])
    assert status == 1
    assert output.endswith("UNSTABLE some/A.FailsOnce\nFAILED some/A.Fails\n3 ran, 0 skipped, 1 failed\n")


@pytest.mark.parametrize("case", ["A.FailsThenIsSkipped", "A.CrashesOnce"])
def test_what_did_not_pass_or_ended_its_program_is_not_forgiven(run, case):
    status, output, _ = run("A.One", case, options=["--timing"])
    assert status == 1 and output.endswith(f"FAILED some/{case}\n2 ran, 0 skipped, 1 failed\n")


def test_a_forgiven_case_does_not_hide_how_its_program_ended(run):
    status, output, _ = run("A.FailsOnce", "A.CrashesAtTheEnd", options=["--timing"])
    assert status == 1 and "some_test: ended with SIGABRT after its last test" in output
    status, output, _ = run("A.FailsOnce", "A.EndsQuietly", options=["--timing"])
    assert status == 1 and "some_test: ended without GoogleTest's summary" in output


def test_a_program_that_cannot_list_its_cases_is_named(run, tmp_path):
    broken = f"true)\nmessage(FATAL_ERROR \"Error running test executable.\\n  Path: '{tmp_path}/bin/io_test'\""
    status, output, _ = run("A.One", other=[("true", broken)])
    assert status == 1 and f"failed: {tmp_path}/bin/io_test: could not list its tests\n" in output


def test_some_tests_are_left_to_others(run):
    assert run("A.One", "A.Two", "A.Three", options=["--except", "T[wh]"])[1] == "1 ran, 0 skipped, 0 failed\n"


def test_a_status_without_a_failed_case_is_a_failure(run):
    status, output, _ = run("A.One", "A.EndsWithOne")
    assert status == 1 and "some_test: ended with status 1 after its last test" in output


def test_only_some_tests_run(run):
    status, output, processes = run("A.One", "A.Two", "B.One", options=["--only", "^some/A"])
    assert status == 0, output
    assert processes == ["A.One A.Two"]


def test_other_tests_run_as_they_are(run):
    status, output, _ = run("A.One", other=[("true", "true"), ("false", "false")])
    assert status == 1 and "failed: other/false: ended with status 1" in output


def test_nothing_is_a_failure(run):
    assert run()[0] == 1


def test_properties_that_are_not_understood_are_refused(run, tmp_path):
    properties = "set_tests_properties(other/true PROPERTIES RESOURCE_LOCK disk"
    status, output, _ = run("A.One", other=[("true", f"true)\n{properties}")])
    assert status == 1 and "other/true has the property RESOURCE_LOCK" in output


def test_programs_have_a_minute_to_list_their_cases():
    """CMake's default is five seconds, which is too short on a busy machine or with a sanitizer."""
    text = (ROOT / "tests" / "CMakeLists.txt").read_text()
    calls = re.findall(r"gtest_discover_tests\(.*?\)\n", text, re.DOTALL)
    assert calls and all("DISCOVERY_TIMEOUT 60" in call for call in calls)
