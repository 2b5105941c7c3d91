#!/usr/bin/env python3
"""Builds and runs proofs of tests/proofs.toml; scripts/test.sh installs what they need and calls this.

  scripts/run_proofs.py [NAME... | --depth MINUTES | --all] [--plan] [--record] [--no-install]

  NAME             only these proofs; without a name, the gate
  --depth MINUTES  after the gate as much of the depth as that time allows
  --all            all proofs
  --plan           only print what would run, and why
  --no-install     leave Python environments unchanged
  --record         write passed proofs to tests/proofs.passed; needs a clean work tree

Ends with what ran, what did not and why, and "N passed, N failed, N skipped". Requested proofs that did not run count
as failed, and so does a proof whose tests were all skipped. SIGINT and SIGTERM end running proofs and show the results.
"""
import argparse
import contextlib
import datetime
import os
import pathlib
import re
import subprocess
import sys
import time

import build_preset
import process_groups
import proofs as table
import run_cpp_tests
import run_pytest
from proofs import ROOT

SANITIZERS = {
    # g++ 12's runtime guesses a module's thread-local memory, and the search for leaks sometimes ended in "Tracer
    # caught signal 11". Without the guess such memory is found in the loader's table.
    "asan": {"ASAN_OPTIONS": "allocator_may_return_null=1:intercept_tls_get_addr=0",
             "UBSAN_OPTIONS": "print_stacktrace=1"},
    # oneDNN and OpenMP's runtime are not instrumented, so kernels run on one thread.
    "tsan": {"TSAN_OPTIONS": f"suppressions={ROOT}/tests/tsan.supp:allocator_may_return_null=1",
             "OMP_NUM_THREADS": "1"},
}


def duration(seconds):
    return f"{seconds:.0f} s" if seconds < 60 else f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"


class Summary:
    """The results of the proofs."""

    def __init__(self):
        self.passed, self.failed, self.skipped = 0, 0, 0  # numbers of tests
        self.lines, self.failures, self.notes = [], [], []

    def count(self, passed, failed, skipped):
        self.passed += passed
        self.failed += failed
        self.skipped += skipped

    def fail(self, what):
        self.failed += 1
        self.failures.append(what)

    def end(self, name, seconds, text, has_failed):
        self.lines.append(f"{'FAILED' if has_failed else 'passed'}  {name} ({duration(seconds)}){': ' if text else ''}{text}")

    def show(self, seconds):
        print("== summary")
        print("\n".join(self.lines + [f"note: {note}" for note in self.notes]))
        for failure in self.failures:
            print(f"FAILED {failure}")
        verb = "FAILED" if self.failed else "All that was asked for passed"
        print(f"{verb} in {duration(seconds)}\n{self.passed} passed, {self.failed} failed, {self.skipped} skipped")


class Runner:
    """Builds what proofs need and runs them one after another."""

    def __init__(self, proofs, jobs, installs):
        self._proofs, self._jobs, self._installs, self._built = proofs, jobs, installs, {}
        self.summary = Summary()

    def build(self, preset, targets=(), without=()):
        """Builds these targets of the preset, or everything without some programs. Returns True on success."""
        wanted = (preset, *targets)
        if wanted in self._built:
            return self._built[wanted]
        begin = time.monotonic()
        name = f"build {' '.join(wanted)}"
        print(f"== {name}", flush=True)
        is_built = self._built[wanted] = build_preset.build(preset, self._jobs, targets, without)
        self.summary.end(name, time.monotonic() - begin, "", not is_built)
        if not is_built:
            self.summary.fail(name)
        return is_built

    def build_for(self, proof):
        if not proof.cpp and not proof.python:
            return True
        targets = [f"{folder}_test" for folder in proof.cpp if folder != "fuzz"] + proof.builds
        if proof.part == "gate" or not targets:
            return self.build(proof.preset, without=self._programs_of_depth())
        # Python tests run programs of the gate's build.
        return self.build(proof.preset, targets) and (not proof.python or self.build("cpu-release", without=self._programs_of_depth()))

    def _programs_of_depth(self):
        """Test programs that only the depth runs."""
        def folders(part):
            return {folder for proof in self._proofs if proof.part == part and proof.preset == "cpu-release"
                    for folder in proof.cpp}
        return tuple(f"{folder}_test" for folder in sorted(folders("depth") - folders("gate")))

    def run(self, proof):
        """Returns True if the proof passed."""
        if not self.build_for(proof):
            self.summary.end(proof.name, 0, "was not built", True)
            return False
        print(f"== {proof.name}", flush=True)
        begin, before = time.monotonic(), self.summary.failed
        try:
            texts = self._run_parts(proof)
        except KeyboardInterrupt:
            self.summary.end(proof.name, time.monotonic() - begin, "was interrupted", True)
            raise
        has_failed = self.summary.failed > before
        self.summary.end(proof.name, time.monotonic() - begin, "; ".join(texts), has_failed)
        print(f"== {proof.name}: {'FAILED' if has_failed else 'passed'} ({duration(time.monotonic() - begin)})", flush=True)
        return not has_failed

    def _run_parts(self, proof):
        """Runs the tests of each language; returns a sentence for each."""
        texts = []
        environment = {**os.environ, **SANITIZERS.get(proof.preset, {}), **({"CAFFE_SLOW_TESTS": "1"} if proof.slow else {}),
                       "CAFFE_TESTS_NEED_BUILD": "1"}  # tests/conftest.py: tests of missing programs fail
        if proof.command:
            self._run_command(proof, environment)
        if proof.cpp:
            texts.append(self._run_cpp(proof, environment))
        if proof.python:
            texts.append(self._run_python(proof, environment))
        return texts

    def _run_command(self, proof, environment):
        limit = run_pytest.limit_of(proof)
        try:
            status = process_groups.run(proof.command, limit, cwd=ROOT, env=environment)
        except OSError as error:
            return self.summary.fail(f"{proof.name}: {error}")
        if status is None:
            return self.summary.fail(f"{proof.name}: {' '.join(proof.command)} took longer than {limit:.0f} s")
        if status:
            return self.summary.fail(" ".join(proof.command))
        return self.summary.count(1, 0, 0)

    def _run_cpp(self, proof, environment):
        # ctest and the tests inherit the environment.
        kept = dict(os.environ)
        os.environ.update(environment)
        try:
            report = run_cpp_tests.run(ROOT / "build" / proof.preset, self._jobs, proof.cases(),
                                       re.compile(proof.excluded) if proof.excluded else None, proof.timing)
        finally:
            os.environ.clear()
            os.environ.update(kept)
        self._tell(proof, report.unstable, report.failed)
        self.summary.count(report.passes, 0, report.skipped)
        if report.is_interrupted:
            raise KeyboardInterrupt
        for folder in sorted(set(proof.cpp) - report.folders):
            self.summary.fail(f"{proof.name}: no C++ test of tests/{folder} ran")
        return f"C++ {report.total()}"

    def _run_python(self, proof, environment):
        if proof.interpreter and self._installs:
            subprocess.run(["bash", "scripts/install_dependencies.sh", proof.interpreter], cwd=ROOT, check=False)
        python = run_pytest.interpreter(proof)
        if not python:
            self.summary.fail(f"{proof.name}: no Python that has what these tests need"
                              f" (scripts/install_dependencies.sh {proof.interpreter or 'test'})")
            return "did not run"
        environment = {**environment, "CAFFE_BINARY_DIR": str(ROOT / "build" / "cpu-release"),
                       "CAFFE_INSTALL_BUILD": str(ROOT / "build" / proof.preset)}
        results = run_pytest.run(python, proof, environment, self._jobs)
        self._tell(proof, results.unstable, results.failed)
        self.summary.count(results.passed, 0, results.skipped)
        if not results.passed and not results.failed:
            self.summary.fail(f"{proof.name}: no Python test ran; all were skipped")
        return f"Python {results.passed} passed, {results.skipped} skipped, {len(results.failed)} failed"

    def _tell(self, proof, unstable, failed):
        for name in unstable:
            self.summary.notes.append(f"unstable: {name} failed, then passed when it ran again"
                                      f"{', which counts as failed' if name in failed else ''}")
        for name in failed:
            self.summary.fail(f"{proof.name}: {name}")


def show_plan(title, first, choices, minutes):
    print(f"{title}: " + ", ".join(f"{proof.name} ({proof.minutes:g} min)" for proof in first))
    if choices:
        print(f"depth{f', {minutes:g} minutes' if minutes else ''}:")
    for choice in choices:
        verb = "runs" if choice.fits else "--all" if choice.proof.slow else "waits"
        print(f"  {verb:5}  {choice.proof.name} ({choice.proof.minutes:g} min): {choice.why}")


def run_depth(runner, choices, minutes, passed):
    """Runs proofs of the depth in this order while time allows; proofs that finish early make room for more."""
    begin = time.monotonic()
    for choice in choices:
        left = minutes - (time.monotonic() - begin) / 60
        if choice.proof.slow:
            runner.summary.notes.append(f"{choice.proof.name} runs only with --all or by its name; it {choice.why}")
        elif choice.proof.minutes > left:
            runner.summary.notes.append(f"{choice.proof.name} waits for another run: it takes {choice.proof.minutes:g}"
                                        f" of {max(left, 0):.0f} minutes that are left; it {choice.why}")
        elif runner.run(choice.proof):
            passed.append(choice.proof)


def clean_head():
    """The commit of the work tree; raises Mistake if the tree is not clean."""
    head, status = table.git("rev-parse", "--verify", "HEAD"), table.git("status", "--porcelain")
    for done in (head, status):
        if done.returncode:
            raise table.Mistake(f"--record needs git, which says: {done.stderr.strip()}")
    if status.stdout.strip():
        raise table.Mistake("--record needs a clean work tree: what passes is recorded for a commit")
    return head.stdout.strip()


def record(passed, proofs, commit, passes):
    """Records passed proofs at a commit, unless the tree has changed since."""
    if clean_head() != commit:
        raise table.Mistake(f"HEAD was {commit[:10]} when the proofs began, and is not now")
    for proof in passed:
        passes[proof.name] = table.Pass(commit, datetime.date.today())
    table.save_record(passes, proofs)
    print(f"{table.RECORD}: {len(passed)} proofs passed at {commit[:10]}")


def minutes_of(text):
    with contextlib.suppress(ValueError):
        if float(text) >= 0:  # also rejects nan
            return float(text)
    raise argparse.ArgumentTypeError(f"'{text}' is not a number of minutes from 0 up")


def parse():
    parser = argparse.ArgumentParser(prog="scripts/test.sh", description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--depth", type=minutes_of, default=0, metavar="MINUTES")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--plan", action="store_true")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--no-install", action="store_true")
    arguments = parser.parse_args()
    if bool(arguments.names) + bool(arguments.depth) + arguments.all > 1:
        parser.error("NAME, --depth and --all choose what runs; give one of them")
    return arguments


def chosen(arguments, proofs):
    """The proofs that run in any case, and the choices for the depth."""
    known = {proof.name: proof for proof in proofs}
    wrong = [name for name in arguments.names if name not in known]
    if wrong:
        raise table.Mistake(f"no proof is called {wrong[0]}; there are {', '.join(known)}")
    if arguments.names:
        return [known[name] for name in arguments.names], []
    if arguments.all:
        return proofs, []
    minutes = arguments.depth
    choices = table.order_of_depth(proofs, table.load_record(), minutes) if minutes or arguments.plan else []
    return [proof for proof in proofs if proof.part == "gate"], choices


def main():
    process_groups.end_by_signals()
    arguments = parse()
    begin = time.monotonic()
    try:
        proofs = table.load()
        first, choices = chosen(arguments, proofs)
        missing = list(table.unclaimed(proofs))
        if missing:
            raise table.Mistake("\n".join(missing))
        commit, passes = (clean_head(), table.load_record()) if arguments.record else ("", {})
    except table.Mistake as mistake:
        sys.exit(f"{mistake}")
    show_plan("asked for" if arguments.names or arguments.all else "gate", first, choices, arguments.depth)
    if arguments.plan:
        return 0
    cores = build_preset.available_cores()
    jobs = build_preset.compilers_at_once(cores, build_preset.available_memory())
    runner = Runner(proofs, jobs, not arguments.no_install)
    if jobs < cores:
        runner.summary.notes.append(f"{jobs} of {cores} cores are used: a compiler may need 2 GiB of memory")
    if not pathlib.Path(os.environ.get("CAFFE_TEST_DATA", "")).is_dir() or not os.environ.get("CAFFE_TEST_DATA"):
        runner.summary.notes.append("tests on real data were skipped: CAFFE_TEST_DATA names no folder")
    passed = []
    try:
        for proof in first:
            passed += [proof] if runner.run(proof) else []
        run_depth(runner, choices, arguments.depth, passed)
    except KeyboardInterrupt:
        runner.summary.fail("interrupted: what is not named above did not run")
    if arguments.record:
        try:
            record(passed, proofs, commit, passes)
        except table.Mistake as mistake:
            runner.summary.fail(f"nothing was recorded: {mistake}")
    runner.summary.show(time.monotonic() - begin)
    return 1 if runner.summary.failed else 0


if __name__ == "__main__":
    sys.exit(main())
