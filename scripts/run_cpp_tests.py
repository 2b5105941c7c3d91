#!/usr/bin/env python3
"""Runs the tests that ctest lists, with several cases of a GoogleTest program per process.

    scripts/run_cpp_tests.py build/cpu-release [--jobs 2] [--only REGEX] [--except REGEX] [--timing]

ctest starts a process for each test case, which costs more than most cases do. Here a program's cases share
a process per job. A case that crashes or takes longer than its TIMEOUT is reported, and the cases after it
run in a new process. A case during which a sanitizer reports something has failed, and so has a program that
ends by a signal, without GoogleTest's summary, or whose children keep its output open until the time limit.
Other tests run as with ctest.

A failed case runs again by itself. If it then passes, it is reported as unstable and still counts as failed.
With --timing one case runs at a time, and a failed case runs again at most twice. If it then passes, it is
reported as unstable but does not count as failed, unless it had ended its program.

SIGINT and SIGTERM end running tests and start no more; the results so far are shown.

The whole output is kept in BUILD/Testing/cpp_tests/. Ends with the names of failed tests and
"N ran, N skipped, N failed"; the exit status is 1 if something failed or nothing ran.
"N ran, N skipped, N failed"; the exit status is 1 where something failed or nothing ran.
"""
import argparse
import collections
import concurrent.futures
import dataclasses
import io
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time

import process_groups

FILTER = "--gtest_filter="
# Properties of tests that have no effect here, or are handled below.
KNOWN_PROPERTIES = {"DISABLED", "LABELS", "RUN_SERIAL", "SKIP_REGULAR_EXPRESSION", "TIMEOUT", "WORKING_DIRECTORY"}
EVENT = re.compile(r"\[ +(RUN|OK|FAILED|SKIPPED) +\] ([^\s,(]+)")
SUMMARY = re.compile(r"\[=+\] \d+ tests?\b.* ran\.")
SANITIZER = re.compile(r"SUMMARY: \w*Sanitizer.*")
OUTPUT_OF_A_FAILURE = 20_000  # characters of output shown
MAY_RUN_AGAIN = 20  # if more cases failed, it was not by chance


@dataclasses.dataclass
class Test:
    name: str
    command: list
    folder: str
    timeout: float
    is_disabled: bool = False

    @property
    def case(self):
        """GoogleTest's name of the case, or an empty string."""
        return self.command[1][len(FILTER):] if len(self.command) > 1 and self.command[1].startswith(FILTER) else ""


class Report:
    """The results of the tests. Used by several threads."""

    def __init__(self):
        self.passes, self.skipped, self.ran, self.failed, self.unstable = 0, 0, 0, [], []
        self.folders = set()  # folders of the tests that ran
        self.have_ended_a_program, self.is_interrupted = set(), False
        self._lock = threading.Lock()

    def passed(self, name):
        with self._lock:
            self.ran += 1
            self.passes += 1
            self.folders.add(name.split("/")[0])

    def skip(self, name):
        with self._lock:
            self.skipped += 1
            print(f"skipped: {name}", flush=True)

    def fail(self, name, why, output, ran=True):
        with self._lock:
            self.ran += ran
            if ran:
                self.folders.add(name.split("/")[0])
            self.failed.append(name)
            print(f"{output[-OUTPUT_OF_A_FAILURE:]}\nfailed: {name}: {why}", flush=True)

    def passed_again(self, name, is_forgiven):
        self.unstable.append(name)
        if is_forgiven:
            self.failed.remove(name)
            self.passes += 1
        print(f"unstable: {name}: failed, then passed when it ran again", flush=True)

    def total(self):
        return f"{self.ran} ran, {self.skipped} skipped, {len(self.failed)} failed"


class ListingFailed(Exception):
    """A test program could not list its cases; ctest then lists nothing."""

    def program(self):
        named = re.search(r"Path: '(.*)'", str(self))
        return named[1] if named else "ctest --show-only"


def listed_tests(build, only, excluded):
    listing = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=False, text=True,
                             capture_output=True)
    if listing.returncode:
        raise ListingFailed(listing.stderr)
    for entry in json.loads(listing.stdout)["tests"]:
        properties = {item["name"]: item["value"] for item in entry.get("properties", [])}
        unknown = sorted(set(properties) - KNOWN_PROPERTIES)
        if unknown:
            sys.exit(f"test {entry['name']} has the property {unknown[0]}, which {__file__} does not know: teach it")
        is_wanted = only.search(entry["name"]) and not (excluded and excluded.search(entry["name"]))
        if is_wanted:
            yield Test(entry["name"].split("  # GetParam")[0], entry.get("command", []), properties.get("WORKING_DIRECTORY", "."),
                       properties.get("TIMEOUT", 1500.0), bool(properties.get("DISABLED")))


def how_it_ended(status):
    return f"ended with {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"


class Process:
    """One run of a program. `allow` sets the time limit for what comes next."""
    are_ended = False  # the script was interrupted
    _all, _lock = set(), threading.Lock()

    def __init__(self, command, folder, seconds):
        self.timed_out = False
        self.allow(seconds)
        with Process._lock:
            if Process.are_ended:
                raise KeyboardInterrupt
            self._process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                             stderr=subprocess.STDOUT, start_new_session=True)
            Process._all.add(self._process)

    @classmethod
    def end_all(cls):
        with cls._lock:
            cls.are_ended = True
            for process in cls._all:
                process_groups.send(process, signal.SIGKILL)

    def allow(self, seconds):
        self._end = time.monotonic() + seconds

    def lines(self):
        """Lines of output, up to the time limit: a process that has left the program's group could keep it open for ever."""
        rest, output = b"", self._process.stdout.fileno()
        while not Process.are_ended:
            left = self._end - time.monotonic()
            # Checks every second whether the script was interrupted.
            if left > 0 and not select.select([output], [], [], min(left, 1))[0]:
                continue
            if left <= 0:
                self._kill()
                break
            part = os.read(output, 1 << 16)
            if not part:
                break
            *whole, rest = (rest + part).split(b"\n")
            yield from (line.decode(errors="replace") + "\n" for line in whole)
        if rest:
            yield rest.decode(errors="replace")

    def _kill(self):
        self.timed_out = True
        process_groups.send(self._process, signal.SIGKILL)

    def wait(self):
        try:
            self._process.wait(max(0, self._end - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._kill()
        with Process._lock:
            Process._all.discard(self._process)
        status = self._process.wait()
        self._process.stdout.close()
        if Process.are_ended:
            raise KeyboardInterrupt
        return status


def run_alone(test, log, report):
    process = Process(test.command, test.folder, test.timeout)
    output = "".join(process.lines())
    status = process.wait()
    log.write(output)
    ends = {event[1] for event in EVENT.finditer(output) if test.case and event[2] == test.case}
    if process.timed_out:
        report.fail(test.name, f"took longer than its time limit, {test.timeout:g} s", output)
    elif status or SANITIZER.search(output):
        report.fail(test.name, how_it_ended(status), output)
    elif "SKIPPED" in ends:
        report.skip(test.name)
    elif test.case and "OK" not in ends:
        report.fail(test.name, "did not run", output)
    else:
        report.passed(test.name)


class Cases:
    """Follows the progress of a GoogleTest program by its output."""

    def __init__(self, tests, report):
        self.waiting = {test.case: test for test in tests}
        self.running, self.failed = None, False
        self.output, self._summary, self._report = [], None, report
        self.has_ended = False

    def follow(self, line):
        """Returns True if another case began."""
        self.output.append(line)
        self.has_ended = self.has_ended or bool(SUMMARY.search(line))
        self._summary = SANITIZER.search(line) or self._summary
        event = EVENT.search(line)
        if event and event[1] == "RUN" and event[2] in self.waiting:
            self.running, self.output = self.waiting.pop(event[2]), [line]
            return True
        if event and self.running and event[2] == self.running.case:
            self._end(event[1])
        return False

    def _end(self, result):
        if result == "FAILED" or self._summary:
            self.fail("see above")
        elif result == "SKIPPED":
            self._report.skip(self.running.name)
        else:
            self._report.passed(self.running.name)
        self.running, self.output = None, []

    def fail(self, why):
        self._report.fail(self.running.name, self._summary[0] if self._summary else why, "".join(self.output))
        self.failed, self._summary = True, None


def run_once(tests, log, report):
    """Runs cases of a program in one process and returns those that did not start."""
    cases = Cases(tests, report)
    program = tests[0].command[0]
    with tempfile.NamedTemporaryFile("w", suffix=".flags") as flags:
        flags.write(FILTER + ":".join(cases.waiting) + "\n")
        flags.flush()
        command = [program, f"--gtest_flagfile={flags.name}", *tests[0].command[2:]]
        process = Process(command, tests[0].folder, tests[0].timeout)
        for line in process.lines():
            log.write(line)
            if cases.follow(line):
                process.allow(cases.running.timeout)
        status = process.wait()
    why = "took longer than its time limit" if process.timed_out else how_it_ended(status)
    output = "".join(cases.output)
    if cases.running:
        report.have_ended_a_program.add(cases.running.name)
        cases.fail(why)
    elif len(cases.waiting) == len(tests) or (cases.waiting and status == 0):  # a new process would not help
        for test in cases.waiting.values():
            report.fail(test.name, f"did not run: {program} {why}", output, ran=False)
        return []
    elif process.timed_out or status not in (0, 1) or (status and not cases.failed):
        report.fail(program, f"{why} after its last test", output, ran=False)
    elif not cases.has_ended:
        report.fail(program, "ended without GoogleTest's summary", output, ran=False)
    return list(cases.waiting.values())


def run_together(tests, log, report):
    while tests:
        tests = run_once(tests, log, report)


def run_again(report, tests, is_forgiven):
    """Runs failed cases once more, or twice if they may fail by chance, each in its own process."""
    failed = [tests[name] for name in report.failed if name in tests]
    for test in failed if len(failed) <= MAY_RUN_AGAIN else []:
        for _ in range(2 if is_forgiven else 1):
            again = Report()
            run_alone(test, io.StringIO(), again)
            if again.passes and not again.failed:
                report.passed_again(test.name, is_forgiven and test.name not in report.have_ended_a_program)
                break


def run(build, jobs, only, excluded=None, is_timing=False):
    """Runs the tests whose names match `only`, but not `excluded`, and returns the report."""
    report = Report()
    try:
        run_listed(build, jobs, only, excluded, is_timing, report)
    except KeyboardInterrupt:
        Process.end_all()
        report.is_interrupted = True
    return report


def run_listed(build, jobs, only, excluded, is_timing, report):
    # Threads that spin while waiting would take the processor from the other programs.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    jobs = 1 if is_timing else jobs
    logs = build / "Testing" / "cpp_tests"
    logs.mkdir(parents=True, exist_ok=True)
    programs, runs, rerun = collections.defaultdict(list), [], {}
    try:
        listed = list(listed_tests(build, only, excluded))
    except ListingFailed as error:
        report.fail(error.program(), "could not list its tests", str(error), ran=False)
        listed = []
    for test in listed:
        if test.is_disabled:
            report.skip(f"{test.name}, which is disabled")
            continue
        if not test.command or not pathlib.Path(test.command[0]).exists():
            report.fail(test.name, "its program is not built", "", ran=False)
            continue
        rerun[test.name] = test
        if test.case:
            programs[test.command[0]].append(test)
        else:
            runs.append((run_alone, test, test.name))
    for program, tests in programs.items():
        shards = [tests[first::jobs] for first in range(jobs)]
        runs[:0] = [(run_together, shard, f"{pathlib.Path(program).name}.{number}")
                    for number, shard in enumerate(shards) if shard]

    def run_one(function, tests, name):
        with open(logs / (name.replace("/", "_") + ".log"), "w", encoding="utf-8") as log:
            function(tests, log, report)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        try:
            for done in [pool.submit(run_one, *what) for what in runs]:
                done.result()
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            Process.end_all()
            raise
    run_again(report, rerun, is_timing)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--only", type=re.compile, default=re.compile(""), help="tests in whose name this is found")
    parser.add_argument("--except", type=re.compile, dest="excluded", help="but not those in whose name this is found")
    parser.add_argument("--timing", action="store_true", help="one at a time; forgive what passes when it runs again")
    arguments = parser.parse_args()
    process_groups.end_by_signals()
    report = run(arguments.build, arguments.jobs, arguments.only, arguments.excluded, arguments.timing)
    for name in report.unstable:
        print(f"UNSTABLE {name}")
    for name in report.failed:
        print(f"FAILED {name}")
    print(report.total())
    if report.is_interrupted:
        print("interrupted: tests are missing above")
        return 130
    return 1 if report.failed or not report.ran else 0


if __name__ == "__main__":
    sys.exit(main())
