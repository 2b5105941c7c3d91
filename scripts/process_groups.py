"""Runs commands and ends all of their processes if they take too long or the script is interrupted."""
import contextlib
import os
import signal
import subprocess

TIME_TO_END = 20  # seconds for an interrupted program to clean up


def end_by_signals():
    """Makes SIGTERM interrupt this script like Ctrl-C, and Ctrl-C do so in the background of a shell, too."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@contextlib.contextmanager
def signals_later():
    """Defers signals to the end of the block: a program that is being started cannot be ended yet."""
    came = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)}
    handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in handlers:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)


def send(process, number):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def run(command, limit=None, **options):
    """The status of a command, or None if it took longer than the limit in seconds."""
    process = None
    try:
        with signals_later():
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, **options)
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        end(process)
        return None
    except KeyboardInterrupt:
        if process:
            try:
                send(process, signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(TIME_TO_END)
            finally:
                end(process)
        raise


def end(process):
    send(process, signal.SIGKILL)
    process.wait()
