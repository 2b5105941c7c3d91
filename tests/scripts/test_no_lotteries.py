"""Tests do not depend on how busy the machine is: tests that read the clock, sleep or send signals are in tests/timing."""
import pytest

import cpp_lotteries
import python_lotteries


def test_no_cpp_test_depends_on_time():
    found, allowed = cpp_lotteries.lotteries(), {(file, line) for file, line, _ in cpp_lotteries.ALLOWED}
    new = [f"{file}: {line}" for file, line in sorted(found - allowed)]
    assert not new, ("wait for an event, hand over a clock (tests/support/test_clock.hpp), or put the test into "
                     "tests/timing:\n" + "\n".join(new))
    assert not allowed - found, f"allowed, but not there any more: {sorted(allowed - found)}"


@pytest.mark.parametrize("line, is_one", [
    ("std::this_thread::sleep_for(1s);", True), ("usleep(100);", True), ("SleepSeconds(1);", True),
    ("const auto begin = std::chrono::steady_clock::now();", True), ("changed.wait_for(lock, 1s);", True),
    ("kill(child, SIGTERM);", True), ("killpg(child, SIGTERM);", True), ("pthread_kill(thread, SIGINT);", True),
    ("::poll(&descriptor, 1, 100);", True), ("pthread_cond_timedwait(&a, &b, &end);", True), ("waitpid(child, nullptr, 0);", True), ("::alarm(3);", True),
    ("getrusage(RUSAGE_SELF, &usage);", True), ("clock_nanosleep(clock, 0, &a, &b);", True), ("sem_timedwait(&a, &b);", True),
    ("clock_->Advance(1s);", False), ("begun.wait();", False), ("// sleep_for(1s)", False), ("skill(1);", False)])
def test_what_cpp_may_not_call(line, is_one):
    assert bool(cpp_lotteries.lines_in(line)) == is_one


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
    ("process.communicate(timeout=9)", True), ("queue.get(timeout=1)", True), ("datetime.date.today()", True),
    ("date.today()", True), ("os.killpg(1, 2)", True), ("process.communicate()", False), ("names.get('timeout', 3)", False),
    ("time.process_time()", True), ("datetime.datetime.utcnow()", True), ("threading.Timer(3, strike)", True),
    ("subprocess.run(['a'], timeout=5)", True), ("subprocess.check_output(['a'], timeout=0.5)", True),
    ("subprocess.run(['a'], timeout=None)", False), ("process.wait()", False), ("subprocess.run(['a'], timeout=300)", False),
    ("', '.join(words)", False),
    ("program = 'time.sleep(1)'", False), ("thread.join()", False), ("skill(1)", False)])
def test_what_python_may_not_call(line, is_one):
    assert bool(python_lotteries.lines_in(line)) == is_one
