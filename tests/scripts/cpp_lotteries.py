"""Functions that C++ tests must not call outside tests/timing, and the places where they may."""
import pathlib
import re

TESTS = pathlib.Path(__file__).resolve().parents[1]
# Folders in which tests may do it: timing runs alone, the simulation of fuzz has its own clock, and soak takes hours.
EXEMPT = ("timing", "fuzz", "soak")

# Sleeps, clocks and functions that measure with them, waits with a time limit, signals and the end of processes.
PATTERN = re.compile(
    r"\bsleep_(?:for|until)\b|\b(?:u|nano|clock_nano)?sleep\(|\w*Sleep\w*\("
    r"|\b(?:steady|system|high_resolution)_clock\b|\bClock::now\b|\b(?:std::|::)?clock\(\)|\bclock_gettime\("
    r"|\bMeasure[A-Z]\w*\("
    r"|\btime\((?:nullptr|NULL|0)\)|\b(?:gettimeofday|getrusage)\("
    r"|\b(?:try_lock|try_acquire|wait)_(?:for|until)\("
    r"|\bp?poll\(|\b(?:pthread_cond_timedwait|sem_timedwait)\("
    r"|\b(?:kill|killpg|pthread_kill|raise|alarm|setitimer|wait[34p]\w*)\(")

# (file, text of the line, why it does not depend on chance). It is an error if a line does not exist any more.
ALLOWED = [
    ("compat/api_tour.cpp", "std::raise(SIGINT);", "to itself, and handled before it returns"),
    ("conformance/conformance_test.cpp",
     "const auto speed = testing::MeasureCase(test, *device, candidate, dtype, layout);", "printed, not judged"),
    ("device/algorithm_cache_test.cpp", "EXPECT_EQ(waitpid(child, &status, 0), child);", "its own children, each once"),
    ("device/algorithm_cache_test.cpp", "const int64_t now_ = std::time(nullptr);", "a time of day that files bear"),
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
    ("data/pipeline_bench_test.cpp", "const PipelineSpeed speed = MeasurePipeline(data, options, 0.01);",
     "any speed above none is right"),
    ("data/pipeline_bench_test.cpp", "EXPECT_GT(MeasureLink(DeviceKind::kCpu, 0, 0.01), 0);",
     "any speed above none is right"),
    ("disk/disk.cpp", "if (fault_.signal() != 0) return ::raise(fault_.signal()) == 0;  // it goes on if it survives",
     "to itself, at one operation"),
    ("disk/disk.cpp", "::kill(::getpid(), SIGKILL);", "to itself, at one operation"),
    ("disk/memory.cpp", "::alarm(kLimitSeconds);", "a safety net"),
    ("disk/memory.cpp", "if (child < 0 || ::waitpid(child, &status, 0) != child) return 2;", "its own child, once"),
    ("io/hdf5_files_test.cpp", "kill(Children()[0], SIGSEGV);", "to a child that waits for a question"),
    ("io/hdf5_files_test.cpp", "kill(Children()[0], SIGPROF);", "to a child that waits for a question"),
    ("io/hdf5_files_test.cpp", "kill(Children().at(0), SIGKILL);", "to a child that waits for a question"),
    ("io/hdf5_files_test.cpp",
     "for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) kill(Children().at(0), signal);",
     "to a child that waits for a question"),
    ("support/op_case.cpp", "std::optional<CaseSpeed> MeasureCase(const OpCase& test, Device& device,",
     "for --speed of conformance_test"),
    ("support/op_case.hpp", "std::optional<CaseSpeed> MeasureCase(const OpCase& test, Device& device,",
     "for --speed of conformance_test"),
    ("layers/issue_downsample_long_axis_test.cpp", "const std::clock_t begin = std::clock();",
     "the process's own time, not the clock's"),
    ("layers/issue_downsample_long_axis_test.cpp",
     "EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 5);",
     "the process's own time, not the clock's"),
    ("plan/planning_cost_test.cpp", "getrusage(RUSAGE_SELF, &usage);", "the process's own time and memory"),
]


def lines_in(text):
    """The lines in which the pattern is found outside comments."""
    return [line.strip() for line in text.splitlines() if PATTERN.search(re.sub(r"//.*", "", line))]


def lotteries():
    """{(file, line)} outside the exempt folders."""
    found = set()
    for path in (path for kind in ("*.cpp", "*.hpp", "*.h", "*.cu") for path in TESTS.rglob(kind)):
        file = path.relative_to(TESTS)
        if file.parts[0] not in EXEMPT:
            found |= {(str(file), line) for line in lines_in(path.read_text(encoding="utf-8"))}
    return found
