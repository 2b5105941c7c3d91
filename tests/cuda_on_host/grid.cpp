// Grids on the host: a fiber per thread that waits. A fiber goes on with the next thread when one
// ends, so kernels without barriers never switch.
#include <setjmp.h>
#include <ucontext.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "cuda_runtime_api.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace cuda_on_host {
namespace {

constexpr unsigned kWarpThreads = 32, kMaxThreads = 1024;
constexpr size_t kStackBytes = 128 << 10;

[[noreturn]] void Fail(const char* what, const std::source_location& site) {
  std::fprintf(stderr, "cuda_on_host: %s: %s:%u, thread %u of block %u\n", what, site.file_name(),
               static_cast<unsigned>(site.line()), threadIdx.x, blockIdx.x);
  std::abort();
}

bool IsSameSite(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && a.column() == b.column() && a.file_name() == b.file_name();
}

struct Fiber {
  std::unique_ptr<char[]> stack = std::make_unique<char[]>(kStackBytes);
  jmp_buf at;
  bool has_begun = false;
};

struct Thread {
  Fiber* fiber = nullptr;  // while it waits
  Barrier barrier = Barrier::kBlock;
  std::source_location site;
  unsigned exchange = 0;
  // Two: a lane may be one exchange ahead of another that has yet to read.
  alignas(16) std::array<char[16], 2> slots;
};

class Block {
 public:
  void Run(unsigned threads, const std::function<void()>& body) {
    threads_.resize(threads);
    for (Thread& thread : threads_) thread.fiber = nullptr;
    body_ = &body;
    num_begun_ = num_ended_ = 0;
    while (num_begun_ < threads) Switch(FreeFiber());
    while (num_ended_ < threads) {
      // Warps that are complete go on; the rest may wait for them.
      bool went_on = false;
      for (unsigned first = 0; first < threads; first += kWarpThreads) {
        if (threads - first < kWarpThreads || !AllWait(Barrier::kWarp, first, kWarpThreads)) {
          continue;
        }
        GoOn(first, kWarpThreads);
        went_on = true;
      }
      if (went_on) continue;
      if (!AllWait(Barrier::kBlock, 0, threads)) FailStuck();
      GoOn(0, threads);
    }
    is_backwards_ = !is_backwards_;
  }

  void Wait(Barrier barrier, const std::source_location& site) {
    Thread& thread = threads_[threadIdx.x];
    thread.barrier = barrier;
    thread.site = site;
    thread.fiber = running_;
    Suspend();
  }

  Thread& thread(unsigned index) { return threads_[index]; }

 private:
  bool AllWait(Barrier barrier, unsigned first, unsigned count) const {
    for (unsigned i = first; i < first + count; ++i) {
      if (threads_[i].fiber == nullptr || threads_[i].barrier != barrier ||
          !IsSameSite(threads_[i].site, threads_[first].site)) {
        return false;
      }
    }
    return true;
  }

  // Of the threads that wait for what never comes, the first.
  [[noreturn]] void FailStuck() const {
    for (unsigned i = 0; i < threads_.size(); ++i) {
      if (threads_[i].fiber == nullptr) continue;
      threadIdx.x = i;
      Fail("waits for threads that have ended or wait elsewhere", threads_[i].site);
    }
    std::abort();
  }

  void GoOn(unsigned first, unsigned count) {
    is_backwards_ = !is_backwards_;
    for (unsigned i = 0; i < count; ++i) {
      threadIdx.x = first + (is_backwards_ ? count - 1 - i : i);
      Thread& thread = threads_[threadIdx.x];
      Switch(std::exchange(thread.fiber, nullptr));
    }
  }

  Fiber* FreeFiber() {
    if (free_.empty()) free_.push_back(fibers_.emplace_back(std::make_unique<Fiber>()).get());
    Fiber* fiber = free_.back();
    free_.pop_back();
    return fiber;
  }

  // To a fiber, and back when its thread waits or there is no thread left to begin.
  void Switch(Fiber* fiber) {
    running_ = fiber;
    if (_setjmp(scheduler_) != 0) return;
    if (fiber->has_begun) _longjmp(fiber->at, 1);
    fiber->has_begun = true;
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = fiber->stack.get();
    context.uc_stack.ss_size = kStackBytes;
    context.uc_link = nullptr;
    makecontext(&context, &Block::FiberMain, 0);
    setcontext(&context);
  }
  void Suspend() {
    if (_setjmp(running_->at) == 0) _longjmp(scheduler_, 1);
  }

  static void FiberMain();
  void RunThreads() {
    for (;;) {
      const auto count = static_cast<unsigned>(threads_.size());
      while (num_begun_ < count) {
        const unsigned next = num_begun_++;
        threadIdx.x = is_backwards_ ? count - 1 - next : next;
        (*body_)();
        ++num_ended_;
      }
      free_.push_back(running_);
      Suspend();
    }
  }

  const std::function<void()>* body_ = nullptr;
  std::vector<Thread> threads_;
  unsigned num_begun_ = 0, num_ended_ = 0;
  bool is_backwards_ = false;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> free_;
  Fiber* running_ = nullptr;
  jmp_buf scheduler_;
};

Block block;

void Block::FiberMain() {
  block.RunThreads();
}

}  // namespace

void RunGrid(const cudaLaunchConfig_t& config, const std::function<void()>& thread) {
  blockDim = config.blockDim;
  gridDim = config.gridDim;
  if (blockDim.x == 0 || blockDim.x > kMaxThreads || gridDim.x == 0 ||
      blockDim.y * blockDim.z * gridDim.y * gridDim.z != 1 || config.dynamicSmemBytes != 0) {
    Fail("a launch that no device takes, or that is not emulated", std::source_location::current());
  }
  static bool is_backwards = false;
  is_backwards = !is_backwards;
  for (unsigned i = 0; i < gridDim.x; ++i) {
    blockIdx.x = is_backwards ? gridDim.x - 1 - i : i;
    block.Run(blockDim.x, thread);
  }
}

void Wait(Barrier barrier, const std::source_location& site) {
  block.Wait(barrier, site);
}

void* ExchangeSlot(unsigned lane) {
  const unsigned warp = threadIdx.x / kWarpThreads * kWarpThreads;
  return block.thread(warp + lane).slots[block.thread(threadIdx.x).exchange % 2];
}

void NextExchange() {
  ++block.thread(threadIdx.x).exchange;
}

}  // namespace cuda_on_host
