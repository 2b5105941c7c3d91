"""Runs commands of which nothing is left when they take too long or the script is interrupted."""
import contextlib
import os
import signal
import subprocess

TIME_TO_END = 20  # seconds in which an interrupted program tidies up


def end_by_signals():
    """SIGTERM interrupts this script as Ctrl-C does, and Ctrl-C does so in the background of a shell too."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def send(process, number):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def run(command, limit=None, **options):
    """The status of a command, or nothing where it took longer than so many seconds."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, **options) as process:
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            send(process, signal.SIGKILL)
            return None
        except KeyboardInterrupt:
            send(process, signal.SIGINT)
            try:
                process.wait(TIME_TO_END)
            finally:
                send(process, signal.SIGKILL)
            raise
