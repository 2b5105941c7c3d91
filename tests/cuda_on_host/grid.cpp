// Grids on the host, with one fiber per waiting thread. When a thread ends, its fiber continues
// with the next one, so kernels without barriers never switch.
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
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

// The place where a thread continues.
struct Fiber {
  std::unique_ptr<char[]> stack = std::make_unique<char[]>(kStackBytes);
  jmp_buf at;
  bool has_begun = false;
};

struct Thread {
  Fiber* fiber = nullptr;  // set while it waits
  Barrier barrier = Barrier::kBlock;
  std::source_location site;
  unsigned exchange = 0;
  // Two slots, because a lane may be one exchange ahead of another that has yet to read.
  alignas(16) std::array<char[16], 2> slots;
};

class Block {
 public:
  void Run(unsigned threads, const std::function<void()>& body) {
    threads_.resize(threads);
    for (Thread& thread : threads_) {
      thread.fiber = nullptr;
      thread.exchange = 0;  // equal for all, even after a smaller block
    }
    body_ = &body;
    num_ended_ = 0;
    ForWarps([&](const Warp& warp) { Begin(warp); });
    while (num_ended_ < threads) {
      if (!AllWait(Barrier::kBlock, {0, threads})) FailStuck();
      ForWarps([&](const Warp& warp) { GoOn(warp); });
    }
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
  struct Warp {
    unsigned first, count;
  };

  // Runs each warp in turn, as far as it can go without the others.
  template <typename Fn>
  void ForWarps(Fn fn) {
    const bool is_backwards = is_backwards_ = !is_backwards_;
    const auto threads = static_cast<unsigned>(threads_.size());
    const unsigned warps = (threads + kWarpThreads - 1) / kWarpThreads;
    for (unsigned i = 0; i < warps; ++i) {
      const unsigned first = (is_backwards ? warps - 1 - i : i) * kWarpThreads;
      const Warp warp{first, std::min(kWarpThreads, threads - first)};
      fn(warp);
      while (warp.count == kWarpThreads && AllWait(Barrier::kWarp, warp)) GoOn(warp);
    }
  }

  void Begin(const Warp& warp) {
    beginning_ = warp;
    num_begun_ = 0;
    while (num_begun_ < warp.count) Switch(FreeFiber());
  }
  void GoOn(const Warp& warp) {
    is_backwards_ = !is_backwards_;
    for (unsigned i = 0; i < warp.count; ++i) {
      threadIdx.x = InTurn(warp, i);
      Switch(std::exchange(threads_[threadIdx.x].fiber, nullptr));
    }
  }
  unsigned InTurn(const Warp& warp, unsigned i) const {
    return warp.first + (is_backwards_ ? warp.count - 1 - i : i);
  }

  bool AllWait(Barrier barrier, const Warp& threads) const {
    const Thread& first = threads_[threads.first];
    for (unsigned i = threads.first; i < threads.first + threads.count; ++i) {
      if (threads_[i].fiber == nullptr || threads_[i].barrier != barrier ||
          !IsSameSite(threads_[i].site, first.site)) {
        return false;
      }
    }
    return true;
  }

  // Reports the first thread that waits for something that never comes.
  [[noreturn]] void FailStuck() const {
    for (unsigned i = 0; i < threads_.size(); ++i) {
      if (threads_[i].fiber == nullptr) continue;
      threadIdx.x = i;
      Fail("waits for threads that have ended or wait elsewhere", threads_[i].site);
    }
    std::abort();
  }

  Fiber* FreeFiber() {
    if (free_.empty()) free_.push_back(fibers_.emplace_back(std::make_unique<Fiber>()).get());
    Fiber* fiber = free_.back();
    free_.pop_back();
    return fiber;
  }

  // Switches to a fiber, and returns when its thread waits or there is no thread left to begin.
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
      while (num_begun_ < beginning_.count) {
        threadIdx.x = InTurn(beginning_, num_begun_++);
        (*body_)();
        ++num_ended_;
      }
      free_.push_back(running_);
      Suspend();
    }
  }

  const std::function<void()>* body_ = nullptr;
  std::vector<Thread> threads_;
  Warp beginning_{};
  unsigned num_begun_ = 0, num_ended_ = 0;  // in the current warp; in the block
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
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
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
