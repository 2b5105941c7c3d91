"""Tests do not depend on how busy the machine is: who looks at the clock, sleeps or signals lives in tests/timing."""
import pathlib
import re

import pytest

import python_lotteries

TESTS = pathlib.Path(__file__).resolve().parents[1]
# Where tests may do it: timing runs alone, the simulation of fuzz has a clock of its own, and soak takes hours.
EXEMPT = ("timing", "fuzz", "soak")

# Sleeping, clocks, waits with an end, signals and the end of processes.
CPP_PATTERN = re.compile(
    r"\bsleep_(?:for|until)\b|\b(?:u|nano)?sleep\(|\w*Sleep\w*\("
    r"|\b(?:steady|system|high_resolution)_clock\b|\bClock::now\b|\b(?:std::|::)?clock\(\)|\bclock_gettime\("
    r"|\btime\((?:nullptr|NULL|0)\)|\bgettimeofday\("
    r"|\b(?:try_lock|try_acquire|wait)_(?:for|until)\("
    r"|\b(?:kill|raise|alarm|setitimer|wait[34p]\w*)\(")

# (file, text of the line, why no chance is in it). A line that is not there any more is an error, too.
CPP_ALLOWED = [
    ("compat/api_tour.cpp", "std::raise(SIGINT);", "to itself, and handled before it returns"),
    ("cuda/algorithm_cache_test.cpp", "EXPECT_EQ(waitpid(child, &status, 0), child);", "its own children, each once"),
    ("cuda/algorithm_cache_test.cpp", "const int64_t now_ = std::time(nullptr);", "a time of day that files bear"),
    ("cuda/plan_choice_test.cpp", "EXPECT_EQ(waitpid(child, &status, 0), child);", "its own children, each once"),
    ("cuda_on_host/cuda_runtime_api.h",
     "return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);",
     "the clock that kernels see"),
    ("cuda_on_host/nvjpeg.cpp", "std::this_thread::sleep_for(std::chrono::milliseconds(Nvjpeg::Get().delay_ms));",
     "a decoder that is slow; the shortest of two runs counts"),
    ("cuda_on_host/streams.cpp", "std::shared_ptr<std::chrono::steady_clock::time_point> time =", "what events measure"),
    ("cuda_on_host/streams.cpp", "std::make_shared<std::chrono::steady_clock::time_point>();", "what events measure"),
    ("cuda_on_host/streams.cpp", "*time = std::chrono::steady_clock::now();", "what events measure"),
    ("cuda_on_host/work_queue.cpp", "std::this_thread::sleep_for(std::chrono::milliseconds(3));",
     "provokes wrong orders; right ones pass however long it takes"),
    ("cuda_on_host/work_queue.cpp",
     "while (!Advance(count)) std::this_thread::sleep_for(std::chrono::microseconds(20));",
     "until the work is done, without an end"),
    ("disk/disk.cpp", "if (fault_.signal() != 0) return ::raise(fault_.signal()) == 0;  // it goes on if it survives",
     "to itself, at one operation"),
    ("disk/disk.cpp", "::kill(::getpid(), SIGKILL);", "to itself, at one operation"),
    ("disk/memory.cpp", "::alarm(kLimitSeconds);", "a safety net"),
    ("disk/memory.cpp", "if (child < 0 || ::waitpid(child, &status, 0) != child) return 2;", "its own child, once"),
    ("io/hdf5_files_test.cpp", "kill(Children()[0], SIGSEGV);", "to a child that waits for a question"),
    ("io/hdf5_files_test.cpp", "kill(Children()[0], SIGPROF);", "to a child that waits for a question"),
    ("io/hdf5_files_test.cpp",
     "for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) kill(Children().at(0), signal);",
     "to a child that waits for a question"),
    ("layers/issue_downsample_long_axis_test.cpp", "const std::clock_t begin = std::clock();",
     "the process's own time, not the clock's"),
    ("layers/issue_downsample_long_axis_test.cpp",
     "EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 5);",
     "the process's own time, not the clock's"),
]


def lotteries(pattern, *globs):
    """(file, line) of what the pattern finds outside of the exempt folders; comments do not count."""
    for path in sorted(path for glob in globs for path in TESTS.rglob(glob)):
        file = path.relative_to(TESTS)
        if file.parts[0] in EXEMPT:
            continue
        for line in path.read_text(encoding="utf-8").splitlines():
            if pattern.search(re.sub(r"//.*", "", line)):
                yield str(file), line.strip()


def check(found, allowed):
    found, listed = set(found), {(file, line) for file, line, _ in allowed}
    new = [f"{file}: {line}" for file, line in sorted(found - listed)]
    assert not new, ("wait for an event or hand over a clock (tests/support/test_clock.hpp), or put the test into "
                     "tests/timing:\n" + "\n".join(new))
    assert not listed - found, "allowed, but not there any more"


def test_no_cpp_test_depends_on_time():
    check(lotteries(CPP_PATTERN, "*.cpp", "*.hpp", "*.h", "*.cu"), CPP_ALLOWED)


def test_the_pattern_finds_what_it_should():
    for line in ("std::this_thread::sleep_for(1s);", "usleep(100);", "SleepSeconds(1);", "steady_clock::now()",
                 "changed.wait_for(lock, 1s)", "kill(child, SIGTERM);", "waitpid(child, nullptr, 0);", "alarm(3);"):
        assert CPP_PATTERN.search(line), line
    for line in ("clock_->Advance(1s);", "begun.wait();", "Raise(x)", "EXPECT_EQ(waits(), 1);", "skill(1)"):
        assert not CPP_PATTERN.search(line), line


def test_no_python_test_depends_on_time():
    found, allowed = python_lotteries.lotteries(), {(file, line) for file, line, _ in python_lotteries.ALLOWED}
    new = [f"{file}: {line}" for file, line in sorted(found - allowed)]
    assert not new, ("wait for a line of a log or for the end of the program, or put the test into tests/timing:\n" +
                     "\n".join(new))
    assert not allowed - found, f"allowed, but not there any more: {sorted(allowed - found)}"


@pytest.mark.parametrize("line, is_one", [
    ("time.sleep(1)", True), ("sleep(1)", True), ("begin = time.time()", True), ("time.monotonic() + 3", True),
    ("os.kill(1, 2)", True), ("process.terminate()", True), ("subprocess.Popen(['a'])", True), ("process.wait(10)", True),
    ("done.wait(timeout=limit)", True), ("thread.join(timeout=1)", True), ("datetime.now()", True), ("process.poll()", True),
    ("process.wait()", False), ("subprocess.run(['a'], timeout=300)", False), ("', '.join(words)", False),
    ("program = 'time.sleep(1)'", False), ("thread.join()", False), ("skill(1)", False)])
def test_what_python_may_not_call(line, is_one):
    assert bool(python_lotteries.lines_in(line)) == is_one
