#!/usr/bin/env python3
"""Runs a test program and pauses it at random moments, as a busy machine would; processes that it started continue.

    scripts/pause.py [--seed N] [--longest SECONDS] [--limit SECONDS] PROGRAM ARGUMENT...

Pauses last from 0.1 s to --longest (2), the times between them up to twice as long. The exit status is the
program's, or 124 if it ran longer than --limit. A signal that ends this script ends the program and its process group, too.
"""
import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import time

import process_groups

TIME_TO_END = 20  # seconds for an interrupted program to clean up


class Ended(Exception):
    pass


def end_by_signal(number, _):
    raise Ended(128 + number)


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--longest", type=float, default=2)
    parser.add_argument("--limit", type=float, default=900)
    parser.add_argument("program", nargs=argparse.REMAINDER)
    return parser.parse_args()


def has_ended(process, seconds):
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def pause_at_random(process, given):
    """Pauses the program until it ends; returns its status."""
    chance, end = random.Random(given.seed), time.monotonic() + given.limit
    while not has_ended(process, chance.uniform(0.1, 2 * given.longest)):
        if time.monotonic() > end:
            raise Ended(124)
        process.send_signal(signal.SIGSTOP)
        time.sleep(chance.uniform(0.1, given.longest))
        process.send_signal(signal.SIGCONT)
    return process.returncode


def end(process):
    """Lets the program end its children, then ends the rest of its group."""
    process.send_signal(signal.SIGCONT)
    process.send_signal(signal.SIGINT)
    has_ended(process, TIME_TO_END)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def main():
    given = options()
    print(f"pause.py: --seed {given.seed} --longest {given.longest:g}", flush=True)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end_by_signal)
    process = None
    try:
        # SIGINT would be ignored in processes that a script starts in the background.
        with process_groups.signals_later():
            process = subprocess.Popen(given.program, start_new_session=True, stdin=subprocess.DEVNULL,
                                       preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        status = pause_at_random(process, given)
    except Ended as ended:
        status = ended.args[0]
        if process and process.poll() is None:
            end(process)
    return 128 - status if status < 0 else status


if __name__ == "__main__":
    sys.exit(main())
