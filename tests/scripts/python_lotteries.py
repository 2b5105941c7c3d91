"""Finds calls that make Python tests depend on timing: clocks, sleeps, signals, programs that run during the test."""
import ast
import pathlib

TESTS = pathlib.Path(__file__).resolve().parents[1]
# timing runs alone and under scripts/stress_tests.sh; fuzz and soak are programs, and tests run short forms of them to their end.
EXEMPT = ("timing", "fuzz", "soak")
CALLS = {"sleep", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "time_ns", "process_time",
         "process_time_ns", "thread_time", "getrusage", "utcnow", "send_signal", "kill", "killpg",
         "terminate", "raise_signal", "pthread_kill", "alarm", "setitimer", "Popen", "poll"}
SHORTEST_NET = 60  # seconds; a program that a test runs to its end may take this long
CLOCKS = {"time.time", "datetime.now", "datetime.datetime.now", "date.today", "datetime.date.today", "threading.Timer"}

NET = "a safety net of minutes, which no pause or load reaches"
READ_TO_END = "its output is read until it has ended by itself"
# (file, its line, why it cannot fail by chance). It is an error if a line does not exist any more.
ALLOWED = [
    ("python/test_net.py", "done.wait(300)", NET),
    ("python/test_net.py", "assert inside.wait(300)", NET),
    ("python/test_solver.py", "done.wait(300)", NET),
    ("python/test_solver.py", "assert inside.wait(300)", NET),
    ("scripts/gpu_bundle.py",
     'return subprocess.Popen([python, root / "bin" / "caffe-gpu-check", f"--output={root / \'report.json\'}", *arguments],',
     READ_TO_END),
    ("scripts/gpu_bundle.py", "output, errors = process.communicate(timeout=300)", NET),
    ("scripts/test_gpu_check.py", "_, errors = process.communicate(timeout=300)", NET),
    ("smoke/failing_memory.py",
     "self.server = subprocess.Popen([str(part) for part in command], cwd=folder, env=environment, text=True,",
     "answers each line with a line"),
    ("smoke/failing_memory.py", "self.server.wait(timeout=60)", "it ends when its input does; a safety net"),
    ("smoke/programs.py", "process.kill()", NET),
    ("smoke/programs.py", "self._timer = threading.Timer(PATIENCE, self._strike)", NET),
    ("smoke/ranks.py",
     "processes = [subprocess.Popen([str(part) for part in command], cwd=folder, env=environment(folder, **more), text=True,",
     READ_TO_END),
    ("smoke/ranks.py", "if one.poll() is None:", "at the end of a test that has failed"),
    ("smoke/ranks.py", "one.kill()", "at the end of a test that has failed"),
    ("smoke/test_live_line.py",
     "with subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,", READ_TO_END),
    ("smoke/test_live_line.py",
     'with subprocess.Popen([program("caffe"), "train", f"--solver={path}"], stdin=subprocess.DEVNULL, stderr=terminal,',
     READ_TO_END),
    ("smoke/test_training_safety.py", "time.sleep(1.1)  # times in HDF5 are in seconds", "a longer one changes nothing"),
]


def text_of(function):
    try:
        return ast.unparse(function)
    except RecursionError:
        return ""


def is_lottery(call):
    """True for a call that reads a clock, sleeps, signals, starts a program in the background or waits for a limited time."""
    name = text_of(call.func)
    last = name.rpartition(".")[2]
    has_timeout = any(word.arg == "timeout" for word in call.keywords)
    is_short = any(word.arg == "timeout" and isinstance(word.value, ast.Constant) and word.value.value is not None and
                   word.value.value < SHORTEST_NET for word in call.keywords)
    has_number = any(isinstance(value, ast.Constant) and isinstance(value.value, (int, float)) for value in call.args)
    waits = "." in name and (last in ("wait", "join") and (has_timeout or has_number) or
                             last in ("communicate", "get") and has_timeout)
    return last in CALLS or name in CLOCKS or waits or is_short


def lines_in(source):
    """The lines with such calls. Programs in strings are not checked, because a pause of the test does not stop them."""
    lines = source.splitlines()
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return {lines[call.lineno - 1].strip() for call in calls if is_lottery(call)}


def lotteries():
    return {(str(path.relative_to(TESTS)), line) for path in TESTS.rglob("*.py")
            if path.relative_to(TESTS).parts[0] not in EXEMPT for line in lines_in(path.read_text(encoding="utf-8"))}
