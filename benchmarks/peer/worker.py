"""Shared by both frameworks' processes: they run steps on request and report times."""
import json
import pathlib
import resource
import sys
import time


def memory_bytes(field):
    """VmRSS (current) or VmHWM (peak since the last reset) of this process."""
    for line in pathlib.Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(field)


def reset_peak():
    pathlib.Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def say(**message):
    print(json.dumps(message), flush=True)


class Clock:
    """Times of a step: begin(), gradients_ready() after backward, end() after the update."""

    def __init__(self):
        self.gradient_ms, self.gradient_cpu_ms, self.step_ms = [], [], []
        self._begun = self._begun_cpu = 0.0

    def begin(self):
        self._begun, self._begun_cpu = time.perf_counter(), time.process_time()

    def gradients_ready(self):
        self.gradient_ms.append((time.perf_counter() - self._begun) * 1000)
        self.gradient_cpu_ms.append((time.process_time() - self._begun_cpu) * 1000)

    def end(self):
        self.step_ms.append((time.perf_counter() - self._begun) * 1000)


def serve(step, clock, idle_bytes, warm_up=2):
    """Runs the number of steps in each line of standard input. idle_bytes: VmRSS before the net was built."""
    for _ in range(warm_up):
        step()
    start_peak = max(memory_bytes("VmHWM"), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
    reset_peak()
    say(ready=True)
    for line in sys.stdin:
        for times in (clock.gradient_ms, clock.gradient_cpu_ms, clock.step_ms):
            times.clear()
        for _ in range(int(line)):
            step()
        peak = memory_bytes("VmHWM")
        say(gradient_ms=clock.gradient_ms, gradient_cpu_ms=clock.gradient_cpu_ms, step_ms=clock.step_ms,
            peak_bytes=max(start_peak, peak), steps_bytes=peak, idle_bytes=idle_bytes)
