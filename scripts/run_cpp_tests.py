#!/usr/bin/env python3
"""Runs the tests that ctest lists, those of one GoogleTest program together.

    scripts/run_cpp_tests.py build/cpu-release [--jobs 2] [--only REGEX] [--except REGEX] [--timing]

ctest starts a process for each test case, which costs more than most cases do. Here a program's cases share
a process for each job. A case that crashes or takes longer than its TIMEOUT is named, and the cases after it
run in a new process. A case during which a sanitizer reports something has failed, and so has a program that
ends without GoogleTest's summary. Other tests run as ctest would run them.

A case that failed runs again by itself. If it passes then, it is named as unstable and still counts as failed.
With --timing one case runs at a time, a failed one runs again at most twice, and one that passes then is
named as unstable but does not count as failed.

The whole output is kept in BUILD/Testing/cpp_tests/. Ends with the names of what failed and
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
import signal
import subprocess
import sys
import tempfile
import threading

FILTER = "--gtest_filter="
# Properties of tests that change nothing here, or are taken into account below.
KNOWN_PROPERTIES = {"DISABLED", "LABELS", "RUN_SERIAL", "SKIP_REGULAR_EXPRESSION", "TIMEOUT", "WORKING_DIRECTORY"}
EVENT = re.compile(r"\[ +(RUN|OK|FAILED|SKIPPED) +\] ([^\s,(]+)")
SUMMARY = re.compile(r"\[=+\] \d+ tests?\b.* ran\.")
SANITIZER = re.compile(r"SUMMARY: \w*Sanitizer.*")
OUTPUT_OF_A_FAILURE = 20_000  # characters
MAY_RUN_AGAIN = 20  # cases; where more failed, it was not by chance


@dataclasses.dataclass
class Test:
    name: str
    command: list
    folder: str
    timeout: float

    @property
    def case(self):
        """GoogleTest's name of it, or nothing."""
        return self.command[1][len(FILTER):] if len(self.command) > 1 and self.command[1].startswith(FILTER) else ""


class Report:
    """What became of the tests. Used by several threads."""

    def __init__(self):
        self.ran, self.skipped, self.failed, self.unstable = 0, 0, [], []
        self._lock = threading.Lock()

    def passed(self):
        with self._lock:
            self.ran += 1

    def skip(self, name):
        with self._lock:
            self.skipped += 1
            print(f"skipped: {name}", flush=True)

    def fail(self, name, why, output, ran=True):
        with self._lock:
            self.ran += ran
            self.failed.append(name)
            print(f"{output[-OUTPUT_OF_A_FAILURE:]}\nfailed: {name}: {why}", flush=True)

    def passed_again(self, name, is_forgiven):
        self.unstable.append(name)
        if is_forgiven:
            self.failed.remove(name)
        print(f"unstable: {name}: failed, then passed when it ran again", flush=True)

    def total(self):
        return f"{self.ran} ran, {self.skipped} skipped, {len(self.failed)} failed"


class ListingFailed(Exception):
    """A program of tests could not even say which cases it has; ctest then lists nothing."""

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
        if is_wanted and not properties.get("DISABLED"):
            yield Test(entry["name"].split("  # GetParam")[0], entry.get("command", []), properties.get("WORKING_DIRECTORY", "."),
                       properties.get("TIMEOUT", 1500.0))


def how_it_ended(status):
    return f"ended with {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"


class Process:
    """One run of a program. Nothing may take longer than a limit that `allow` sets anew."""

    def __init__(self, command, folder):
        self.timed_out = False
        self._process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                         stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
        self.lines = self._process.stdout
        self._timer = None

    def allow(self, seconds):
        if self._timer:
            self._timer.cancel()
        self._timer = threading.Timer(seconds, self._kill)
        self._timer.daemon = True
        self._timer.start()

    def _kill(self):
        self.timed_out = True
        os.killpg(self._process.pid, signal.SIGKILL)

    def wait(self):
        status = self._process.wait()
        self._timer.cancel()
        return status


def run_alone(test, log, report):
    process = Process(test.command, test.folder)
    process.allow(test.timeout)
    output = process.lines.read()
    status = process.wait()
    log.write(output)
    if process.timed_out:
        report.fail(test.name, f"took longer than its time limit, {test.timeout:g} s", output)
    elif status or SANITIZER.search(output):
        report.fail(test.name, how_it_ended(status), output)
    else:
        report.passed()


class Cases:
    """Follows a program of GoogleTest by what it prints."""

    def __init__(self, tests, report):
        self.waiting = {test.case: test for test in tests}
        self.running, self.failed = None, False
        self.output, self._summary, self._report = [], None, report
        self.has_ended = False

    def follow(self, line):
        """Whether another case began."""
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
            self._report.passed()
        self.running, self.output = None, []

    def fail(self, why):
        self._report.fail(self.running.name, self._summary[0] if self._summary else why, "".join(self.output))
        self.failed, self._summary = True, None


def run_once(tests, log, report):
    """Runs cases of a program in one process and returns those that did not begin."""
    cases = Cases(tests, report)
    program = tests[0].command[0]
    with tempfile.NamedTemporaryFile("w", suffix=".flags") as flags:
        flags.write(FILTER + ":".join(cases.waiting) + "\n")
        flags.flush()
        process = Process([program, f"--gtest_flagfile={flags.name}", *tests[0].command[2:]], tests[0].folder)
        process.allow(tests[0].timeout)
        for line in process.lines:
            log.write(line)
            if cases.follow(line):
                process.allow(cases.running.timeout)
        status = process.wait()
    why = "took longer than its time limit" if process.timed_out else how_it_ended(status)
    output = "".join(cases.output)
    if cases.running:
        cases.fail(why)
    elif len(cases.waiting) == len(tests) or (cases.waiting and status == 0):  # a new process would do no better
        for test in cases.waiting.values():
            report.fail(test.name, f"did not run: {program} {why}", output, ran=False)
        return []
    elif status and not cases.failed:
        report.fail(program, f"{why} after its last test", output, ran=False)
    elif not status and not cases.has_ended:
        report.fail(program, "ended without GoogleTest's summary", output, ran=False)
    return list(cases.waiting.values())


def run_together(tests, log, report):
    while tests:
        tests = run_once(tests, log, report)


def run_again(report, tests, is_forgiven):
    """Runs what failed once more, or twice where it may fail by chance, each case in a process of its own."""
    failed = [tests[name] for name in report.failed if name in tests]
    for test in failed if len(failed) <= MAY_RUN_AGAIN else []:
        for _ in range(2 if is_forgiven else 1):
            again = Report()
            run_alone(test, io.StringIO(), again)
            if not again.failed:
                report.passed_again(test.name, is_forgiven)
                break


def run(build, jobs, only, excluded=None, is_timing=False):
    """Runs the tests in whose name `only`, but not `excluded`, is found, and returns the report."""
    # Threads that wait for each other in a loop would take the processor from the other programs.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    jobs = 1 if is_timing else jobs
    logs = build / "Testing" / "cpp_tests"
    logs.mkdir(parents=True, exist_ok=True)
    report, programs, runs, rerun = Report(), collections.defaultdict(list), [], {}
    try:
        listed = list(listed_tests(build, only, excluded))
    except ListingFailed as error:
        report.fail(error.program(), "could not list its tests", str(error), ran=False)
        listed = []
    for test in listed:
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
        for done in [pool.submit(run_one, *what) for what in runs]:
            done.result()
    run_again(report, rerun, is_timing)
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", type=re.compile, default=re.compile(""), help="tests in whose name this is found")
    parser.add_argument("--except", type=re.compile, dest="excluded", help="but not those in whose name this is found")
    parser.add_argument("--timing", action="store_true", help="one at a time; forgive what passes when it runs again")
    arguments = parser.parse_args()
    report = run(arguments.build, arguments.jobs, arguments.only, arguments.excluded, arguments.timing)
    for name in report.unstable:
        print(f"UNSTABLE {name}")
    for name in report.failed:
        print(f"FAILED {name}")
    print(report.total())
    return 1 if report.failed or not report.ran else 0


if __name__ == "__main__":
    sys.exit(main())
