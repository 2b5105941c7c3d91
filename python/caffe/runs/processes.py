"""Finds out if the process of a session still runs."""
import datetime
import os
import socket


def is_alive(session):
    """True if the session's process runs. Those on other hosts are taken to, as nothing shows that they do not."""
    if session.get("host") != socket.gethostname():
        return True
    started = _start_of(session.get("process"))
    if started is None:
        return False
    try:
        begun = datetime.datetime.fromisoformat(str(session["start"]).replace("Z", "+00:00")).timestamp()
    except (KeyError, ValueError, OverflowError):
        return True
    return started <= begun + 2  # otherwise the number is another process's; the session's time has whole seconds


def _start_of(process):
    """Seconds since 1970 at which a process started, or None if there is no such process."""
    try:
        with open(f"/proc/{int(process)}/stat", encoding="utf-8", errors="replace") as text:
            fields = text.read().rpartition(")")[2].split()
        if fields[0] == "Z":
            return None
        with open("/proc/stat", encoding="utf-8") as text:
            booted = next(int(line.split()[1]) for line in text if line.startswith("btime"))
        return booted + int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, TypeError, ValueError, OverflowError, IndexError, StopIteration):
        return None
