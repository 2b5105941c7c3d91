"""scripts/fuzz.sh with stand-ins for cmake and the programs: how it shares the time, and the table that it prints."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

from programs import PATIENCE

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Prints like libFuzzer, and ends by SIGTERM like libFuzzer. A busy one uses a fifth of its time on the processor, so a busy
# machine changes little; with SAYS_ITS_TIME it uses none, and reports a hundred seconds.
LIBFUZZER = r"""#!/usr/bin/env python3
import os, re, signal, sys, time
name = os.path.basename(sys.argv[0]).replace("_fuzz", "")
seconds = float(re.search(r"-max_total_time=(\d+)", " ".join(sys.argv)).group(1))
def end(status):
    print(f"stat::number_of_executed_units: 100\nstat::new_units_added: {int(name.startswith('new'))}", flush=True)
    os._exit(status)
signal.signal(signal.SIGTERM, lambda *_: end(72))
# Tests that stop it wait for this line.
with open(os.environ["CALLS"], "a") as calls:
    calls.write(f"{name} {seconds:g}\n")
begin = time.monotonic()
if name == "crash":
    end(77)
if "SAYS_ITS_TIME" in os.environ:
    print("processor: 100.0 0.0 of 100.0")
    end(0)
while time.monotonic() < begin + seconds and (name == "lazy" or time.process_time() < seconds / 5):
    if name == "lazy":
        time.sleep(0.01)
end(0)
"""
# The output of dag_fuzz for 20 nets.
DAG = r"""#!/bin/sh
echo "dag $2 $3" >>"$CALLS"
sleep 0.2
echo "20 nets, 0 refused, 0 with a finding"
"""

# A stand-in for fuzz_replay that takes no time.
REPLAY = r"""#!/bin/sh
echo "replay $*" >>"$CALLS"
echo "40 mutations"
"""


@pytest.fixture(name="fuzz")
def make_tree(tmp_path):
    for name in ("fuzz.sh", "common.sh"):
        (tmp_path / "scripts").mkdir(exist_ok=True)
        shutil.copy(ROOT / "scripts" / name, tmp_path / "scripts")
    (tmp_path / "tests" / "fuzz").mkdir(parents=True)
    programs = {"fake/cmake": "#!/bin/sh\n", "fake/clang++-19": "#!/bin/sh\n", "build/cpu-release/bin/dag_fuzz": DAG}
    programs["build/cpu-release/bin/fuzz_replay"] = REPLAY
    programs |= {f"build/fuzz/bin/{name}_fuzz": LIBFUZZER for name in ("new", "newer", "busy", "lazy", "crash")}
    for path, text in programs.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
        (tmp_path / path).chmod(0o755)
    (tmp_path / "calls").touch()
    environment = {**os.environ, "PATH": f"{tmp_path / 'fake'}:{os.environ['PATH']}", "CALLS": str(tmp_path / "calls")}

    started = []

    def start(*arguments, **more):
        # Processes started in the background ignore SIGINT, and a shell cannot trap a signal that was ignored when it began.
        started.append(subprocess.Popen(["bash", tmp_path / "scripts" / "fuzz.sh", *arguments], env={**environment, **more},
                                        text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)))
        return started[-1]

    def wait_for(condition):
        end = time.monotonic() + PATIENCE
        while not condition(start.calls()):
            assert started[-1].poll() is None and time.monotonic() < end, f"waited for other calls than {start.calls()}"
            time.sleep(0.05)

    start.calls = lambda: (tmp_path / "calls").read_text(encoding="ascii").splitlines()
    start.seconds_of = lambda name: sum(float(line.split()[1]) for line in start.calls() if line.startswith(f"{name} "))
    start.wait_for = wait_for
    yield start
    for run in started:
        if run.poll() is None:
            run.terminate()
        run.wait()


def rows(output):
    """The executions, minutes and findings of each target."""
    return {row[0]: row[1:] for row in re.findall(r"^\| `(\w+)` \| (\d+) \| ([\d.]+) \| (.*) \|$", output, re.M)}


def test_runs_each_target_for_so_many_seconds(fuzz):
    run = fuzz("--seconds", "1", "--jobs", "2", "lazy", "dag")  # a lazy one fills its slices
    output = run.communicate(timeout=PATIENCE)[0]
    assert run.returncode == 0, output
    assert rows(output)["lazy"] == ("100", "0.0", "none")
    assert int(rows(output)["dag"][0]) >= 20
    assert fuzz.seconds_of("lazy") == 1


def test_replays_blindly_without_libfuzzer(fuzz):
    """One program has all targets, each with its own corpus and dictionary."""
    run = fuzz("--plain", "--seconds", "1", "--jobs", "1", "new", "busy")
    output = run.communicate(timeout=60)[0]
    assert run.returncode == 0, output
    for name in ("new", "busy"):
        executions, _, finding = rows(output)[name]
        assert int(executions) >= 40 and finding == "none", output
        assert any(re.fullmatch(rf"replay {name} --seconds 1 --seed \d+ --dictionary tests/fuzz/{name}.dict "
                                rf"--found build/fuzz/found/{name} tests/fuzz/corpus/{name}", line) for line in fuzz.calls())


def test_divides_the_minutes_of_the_clock(fuzz):
    """Four hours for two targets, one at a time: each begins with a fortieth of its two hours."""
    run = fuzz("--total-minutes", "240", "--jobs", "1", "busy", "lazy")
    fuzz.wait_for(len)
    run.terminate()
    run.communicate(timeout=PATIENCE)
    assert fuzz.calls() == ["busy 180"]


def count(calls, name):
    return sum(line.startswith(f"{name} ") for line in calls)


def test_gives_the_next_turn_to_whom_had_least_and_to_new_code_twice(fuzz):
    """A target that reaches new code gets two turns for each turn of the others."""
    run = fuzz("--total-minutes", "240", "--jobs", "1", "new", "busy", SAYS_ITS_TIME="1")
    fuzz.wait_for(lambda calls: len(calls) >= 12)
    run.terminate()
    run.communicate(timeout=PATIENCE)
    new, busy = (count(fuzz.calls(), name) for name in ("new", "busy"))
    assert 1.5 * busy <= new <= 3 * busy, fuzz.calls()


def test_a_finding_ends_its_target_and_no_other(fuzz):
    run = fuzz("--seconds", "1", "--jobs", "1", "crash", "busy")
    output = run.communicate(timeout=PATIENCE)[0]
    assert run.returncode == 1
    assert rows(output)["crash"][2].startswith("FAILED, see build/fuzz/crash.log")
    assert rows(output)["busy"][2] == "none"
    assert count(fuzz.calls(), "crash") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_prints_the_table_when_it_is_stopped(fuzz, tmp_path, number):
    run = fuzz("--seconds", "180", "--jobs", "2", "lazy", "dag", "busy")
    fuzz.wait_for(lambda calls: count(calls, "dag") >= 3 and count(calls, "lazy") > 0)
    run.send_signal(number)
    output = run.communicate(timeout=PATIENCE)[0]
    assert run.returncode == 128 + number, output
    assert rows(output)["lazy"] == ("100", "0.0", "none")
    assert int(rows(output)["dag"][0]) >= 20 and rows(output)["dag"][2] == "none"
    assert rows(output)["busy"] == ("0", "0.0", "none")
    # A target that is killed because it did not end in time prints nothing.
    assert all("processor: " in (tmp_path / "build" / "fuzz" / f"{name}.log").read_text() for name in ("lazy", "dag"))
