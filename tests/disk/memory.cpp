// A library to preload into a program: runs the program's main() repeatedly, each time in a new
// process, with one of all allocations, of any thread, failing.
// tests/smoke/failing_memory.py talks to it:
//
//     standard input  <- the number of the allocation, 0 for none, and a file for the output; -1
//                        writes the call stack of each allocation, as a number, to OUTPUT.stacks
//     standard output -> the status as of waitpid(), how many allocations there were, and the call
//                        stack of the one that failed, 0 for none
//
// Without CAFFE_MEMORY_SERVER the program runs as usual.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>

#include "tests/disk/failing_malloc.hpp"

#ifdef CAFFE_OWN_MALLOC
namespace {

constexpr unsigned kLimitSeconds = 20;  // of one run; a longer run hangs

// The state of a run, in memory that it shares with the server.
struct Run {
  std::atomic<int64_t> failing = 0;  // number of the allocation, from 1; 0 for none
  std::atomic<int64_t> allocations = 0;
  std::atomic<uint64_t> failed_stack = 0;
};
Run* run = nullptr;
uint64_t* stacks = nullptr;  // shared as well
constexpr int64_t kMostStacks = 1 << 22;
std::atomic<bool> is_armed = false;

// A hash of the call stack that allocates. It is the same in all runs, which share their addresses.
uint64_t CallStack() {
  static thread_local bool is_inside = false;  // for allocations of backtrace() itself
  if (is_inside) return 0;
  is_inside = true;
  void* callers[40];
  const int count = ::backtrace(callers, 40);
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (int i = 2; i < count; ++i) {
    hash = (hash ^ reinterpret_cast<uint64_t>(callers[i])) * 0x100000001b3u;
  }
  is_inside = false;
  return hash;
}

using Main = int (*)(int, char**, char**);
Main program = nullptr;

[[noreturn]] void RunProgram(const char* output, int count, char** arguments, char** environment) {
  const int null = ::open("/dev/null", O_RDONLY);
  const int file = ::open(output, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  ::dup2(null, STDIN_FILENO);
  ::dup2(file, STDOUT_FILENO);
  ::dup2(file, STDERR_FILENO);
  ::close(null);
  ::close(file);
  ::alarm(kLimitSeconds);
  is_armed = true;
  const int status = program(count, arguments, environment);
  is_armed = false;  // exit code of other libraries is not tested
  std::exit(status);
}

void WriteStacks(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return;
  std::fwrite(stacks, sizeof(uint64_t), std::min<int64_t>(run->allocations, kMostStacks), file);
  std::fclose(file);
}

int Serve(int count, char** arguments, char** environment) {
  if (std::getenv("CAFFE_MEMORY_SERVER") == nullptr) return program(count, arguments, environment);
  ::unsetenv("CAFFE_MEMORY_SERVER");  // not for programs that this one starts
  void* const shared =
      ::mmap(nullptr, sizeof(Run), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 2;
  run = new (shared) Run;
  void* const all = ::mmap(nullptr, kMostStacks * sizeof(uint64_t), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return 2;
  stacks = static_cast<uint64_t*>(all);
  CallStack();  // loads what backtrace() needs
  char output[4096];
  long long failing = 0;
  while (std::scanf("%lld %4095s", &failing, output) == 2) {
    run->failing = failing;
    run->allocations = 0;
    run->failed_stack = 0;
    const pid_t child = ::fork();
    if (child == 0) RunProgram(output, count, arguments, environment);
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child) return 2;
    if (failing < 0) WriteStacks(std::string(output) + ".stacks");
    std::printf("%d %lld %llu\n", status, static_cast<long long>(run->allocations),
                static_cast<unsigned long long>(run->failed_stack));
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

bool caffe::testing::Fails() {
  if (!is_armed.load(std::memory_order_relaxed)) return false;
  const int64_t number = ++run->allocations, failing = run->failing;
  if (failing < 0 && number <= kMostStacks) stacks[number - 1] = CallStack();
  if (number != failing) return false;
  run->failed_stack = CallStack();
  return !IsSpared();
}

extern "C" int __libc_start_main(Main main, int count, char** arguments, void (*begin)(),
                                 void (*end)(), void (*end_of_loader)(), void* stack) {
  program = main;
  const auto real =
      reinterpret_cast<decltype(&__libc_start_main)>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  return real(Serve, count, arguments, begin, end, end_of_loader, stack);
}
#endif
