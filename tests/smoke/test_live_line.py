"""`caffe train` in a terminal: one line that changes in place, never mixed with the log."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

import pytest

ERASE = b"\r\x1b[K"


class Screen:
    """The contents of a terminal after some bytes: its rows; the last one is being written."""

    def __init__(self):
        self.rows = [""]
        self.column = 0
        self.shown = []  # the last row before each erasure

    def feed(self, text):
        for part in re.findall(r"\x1b\[[0-9;]*[A-Za-z]|.", text, re.S):
            if part == "\r":
                self.column = 0
            elif part == "\n":
                self.rows.append("")
            elif part == "\x1b[K":
                self.shown.append(self.rows[-1])
                self.rows[-1] = self.rows[-1][:self.column]
            else:
                assert not part.startswith("\x1b"), f"unexpected sequence {part!r}"
                row = self.rows[-1].ljust(self.column)
                self.rows[-1] = row[:self.column] + part + row[self.column + 1:]
                self.column += 1
        return self


def in_terminal(command, columns=200, **environment):
    """The bytes that the program writes to a terminal with this many columns."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    variables = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    with subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=terminal, env={**variables, "TERM": "xterm", **environment}) as process:
        os.close(terminal)
        written = b""
        while True:
            try:
                part = os.read(controller, 65536)
            except OSError:  # the program has ended
                break
            if not part:
                break
            written += part
    os.close(controller)
    assert process.returncode == 0, written.decode()
    return written


@pytest.fixture(name="command")
def train(program, solver):
    return [program("caffe"), "train",
            f"--solver={solver('live', max_iter=400, display=50, snapshot_after_train='false')}"]


def test_the_line_stands_below_the_log(command):
    written = in_terminal(command)
    screen = Screen().feed(written.decode())
    lines = [row for row in screen.shown if row.startswith("iteration ")]
    assert lines, "no line was shown"
    assert all(re.fullmatch(r"iteration \d+/400, loss \S+, \d+:\d\d:\d\d left(, \S+ images/s)?, epoch \d+\.\d\d, lr 0\.01, "
                            r"\d+% waiting for data", line) for line in lines), lines
    # Nothing of it is left, and no line of the log is damaged.
    assert not any("iteration " in row for row in screen.rows)
    assert screen.rows[-1] == ""
    messages = [row.split("] ")[-1] for row in screen.rows if re.match(r"[IW]\d{4} ", row)]
    assert sum(message.startswith("Iteration ") and ", lr = 0.01" in message for message in messages) == 8
    assert messages[-1] == "Optimization Done."


def test_each_write_is_whole(command):
    """An erasure is followed by a complete line of the log, or the live line: never by a part of either."""
    for part in in_terminal(command).split(ERASE)[1:]:
        *log, live = part.decode().split("\r\n")
        assert all(re.match(r"[IWE]\d{4} \d\d:", line) for line in log)
        assert live == "" or (live.startswith("iteration ") and live.endswith("waiting for data"))


def test_a_narrow_terminal_gets_what_fits(command):
    """It shows complete items: if a number was cut in two, nobody could recognise it as incomplete."""
    for columns in (20, 32, 80):
        shown = Screen().feed(in_terminal(command, columns=columns).decode()).shown
        lines = [row for row in shown if row.startswith("iteration ")]
        assert lines and max(map(len, lines)) < columns
        assert all(re.fullmatch(r"iteration \d+/400(, loss \S+(, \d+:\d\d:\d\d left(, \S+ images/s)?(, epoch \d+\.\d\d"
                                r"(, lr 0\.01(, \d+% waiting for data)?)?)?)?)?", line) for line in lines), lines


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"TERM": ""}])
def test_a_terminal_without_erasure_gets_plain_lines(command, environment):
    written = in_terminal(command, **environment)
    assert b"\x1b" not in written and b"iteration " not in written
    assert b"Optimization Done." in written


def test_no_color(command):
    """The line has no colour anyway."""
    assert not re.search(rb"\x1b\[[0-9;]*m", in_terminal(command, NO_COLOR="1"))


def test_without_a_terminal_there_are_plain_lines(command, run):
    done = run(*command)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stderr and "\r" not in done.stderr and "iteration 1" not in done.stderr
    assert "Optimization Done." in done.stderr


def test_an_error_erases_the_line(program, solver):
    """The message of a failure is on its own line."""
    controller, terminal = pty.openpty()
    path = solver("bad", max_iter=1000, base_lr=1e30)
    with subprocess.Popen([program("caffe"), "train", f"--solver={path}"], stdin=subprocess.DEVNULL, stderr=terminal,
                          stdout=subprocess.DEVNULL, env={**os.environ, "TERM": "xterm"}) as process:
        os.close(terminal)
        written = b""
        try:
            while part := os.read(controller, 65536):
                written += part
        except OSError:
            pass
    os.close(controller)
    assert process.returncode == 1
    screen = Screen().feed(written.decode())
    assert screen.rows[-1] == "" and "is not a number" in screen.rows[-2]
    assert not any(row.startswith("iteration ") for row in screen.rows)
