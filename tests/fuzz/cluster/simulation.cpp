#include "tests/fuzz/cluster/simulation.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "caffe/error.hpp"
#include "tests/fuzz/cluster/real_calls.hpp"

namespace caffe::fuzz {
namespace {

// Simulated time that a thread takes between two calls.
constexpr int64_t kStep = 2'000;
// After more switches than this, the processes are considered to be in an endless loop.
constexpr int64_t kMostSwitches = 3'000'000;

Simulation* the_simulation = nullptr;
thread_local Simulation::Thread* this_thread = nullptr;

}  // namespace

Simulation::Simulation(const Options& options)
    : options_(options),
      random_(options.seed),
      network_(this, options.network),
      disk_(this, options.disk_folder, options.disk) {
  CAFFE_ASSERT(the_simulation == nullptr, "there is one simulation at a time");
  the_simulation = this;
  ::sem_init(&is_over_, 0, 0);
}

Simulation::~Simulation() {
  the_simulation = nullptr;
  for (auto& thread : threads_) {
    if (!thread->has_ended) thread.release();  // it may still access the object
  }
}

Simulation* Simulation::Current() {
  return this_thread == nullptr ? nullptr : the_simulation;
}

Simulation::Thread& Simulation::Self() {
  return *this_thread;
}

void Simulation::AddProcess(std::function<void()> work) {
  const int process = static_cast<int>(processes_.size());
  processes_.emplace_back();
  Thread& main = NewThread(process, [work = std::move(work)]() -> void* {
    work();
    return nullptr;
  });
  processes_.back().main = &main;
  if (CAFFE_REAL(pthread_create)(&main.handle, nullptr, Begin, &main) != 0) {
    throw DeviceError("cannot start a thread for a process");
  }
}

Simulation::Thread& Simulation::NewThread(int process, std::function<void*()> work) {
  auto thread = std::make_unique<Thread>();
  thread->process = process;
  thread->work = std::move(work);
  ::sem_init(&thread->turn, 0, 0);
  threads_.push_back(std::move(thread));
  return *threads_.back();
}

void* Simulation::Begin(void* thread) {
  this_thread = static_cast<Thread*>(thread);
  ::sem_wait(&this_thread->turn);
  Simulation& simulation = *the_simulation;
  void* const result = this_thread->work();
  this_thread->has_ended = true;
  const Thread& self = *std::exchange(this_thread, nullptr);
  if (&self == simulation.processes_[self.process].main) simulation.network_.Exit(self.process);
  simulation.GiveTurn(simulation.Next());
  return result;
}

bool Simulation::Run() {
  GiveTurn(Next());
  ::sem_wait(&is_over_);
  if (IsOver()) {
    for (const Process& process : processes_) {
      if (process.main->has_ended && process.main->handle != pthread_t{}) {
        CAFFE_REAL(pthread_join)(std::exchange(process.main->handle, pthread_t{}), nullptr);
      }
    }
  }
  return IsOver();
}

void Simulation::GiveTurn(Thread* thread) {
  ::sem_post(thread == nullptr ? &is_over_ : &thread->turn);
}

bool Simulation::IsOver() const {
  return std::ranges::all_of(processes_, [](const Process& one) {
    return (one.state != State::kRuns && !one.will_continue) || one.main->has_ended;
  });
}

void Simulation::AtCall(int process, Calls kind, int64_t number, std::function<void()> action) {
  processes_.at(process).kind_of_action = kind;
  processes_[process].action_at = number;
  processes_[process].action = std::move(action);
}

void Simulation::At(int64_t time, std::function<void()> action) {
  events_.push_back({time, event_count_++, std::move(action)});
  std::push_heap(events_.begin(), events_.end());
}

void Simulation::Kill(int process) {
  processes_.at(process).wanted = State::kKilled;
}
void Simulation::Stop(int process, std::function<void()> then) {
  processes_.at(process).wanted = State::kStopped;
  processes_[process].when_stopped = std::move(then);
}
void Simulation::Continue(int process) {
  Process& one = processes_.at(process);
  if (one.state == State::kKilled) return;
  one.state = one.wanted = State::kRuns;
  one.will_continue = false;
}
void Simulation::Pause(int process, int64_t duration) {
  Stop(process);
  processes_[process].will_continue = true;
  At(now_ + duration, [this, process] { Continue(process); });
}

bool Simulation::HoldsLocks(int process) const {
  return std::ranges::any_of(threads_, [process](const auto& thread) {
    return thread->process == process && thread->locks > 0;
  });
}

// Applies the requested kills and stops.
void Simulation::Change() {
  for (size_t i = 0; i < processes_.size(); ++i) {
    Process& process = processes_[i];
    const int number = static_cast<int>(i);
    if (process.state == process.wanted || process.main->has_ended || HoldsLocks(number)) continue;
    process.state = process.wanted;
    if (process.state == State::kStopped && process.when_stopped) process.when_stopped();
    if (process.state != State::kKilled) continue;
    network_.Exit(number);
    disk_.Exit(number);
  }
}

void Simulation::Enter(Calls kind) {
  Process& process = processes_[Self().process];
  ++process.calls[static_cast<int>(Calls::kAll)];
  if (kind == Calls::kOnDisk) ++process.calls[static_cast<int>(Calls::kOnDisk)];
  if (process.calls[static_cast<int>(process.kind_of_action)] == process.action_at) {
    process.action_at = -1;
    process.action();
    Switch();
    return;
  }
  if (random_.Chance(options_.interruptions)) Switch();
}

bool Simulation::Await(std::function<bool()> is_there, int64_t deadline) {
  Thread& self = Self();
  self.awaits = std::move(is_there);
  self.deadline = deadline;
  Switch();
  const auto awaited = std::exchange(self.awaits, nullptr);
  self.deadline = kNever;
  return awaited();
}

// Lets another thread run, or this one again.
void Simulation::Switch() {
  Thread& self = Self();
  Thread* const next = Next();
  if (next == &self) return;
  GiveTurn(next);
  ::sem_wait(&self.turn);
}

// The next thread to run; null if the simulation is over.
Simulation::Thread* Simulation::Next() {
  now_ += kStep;
  while (true) {
    RunEvents();
    Change();
    if (IsOver() || now_ >= end_ || ++switches_ > kMostSwitches) return nullptr;
    std::vector<Thread*> ready;
    for (const auto& thread : threads_) {
      if (IsReady(*thread)) ready.push_back(thread.get());
    }
    if (!ready.empty()) {
      const int choice = random_.Below(static_cast<int64_t>(ready.size()));
      trace_ = (trace_ ^ static_cast<uint64_t>(now_) ^ static_cast<uint64_t>(choice)) *
               uint64_t{0x9e3779b97f4a7c15};
      return ready[choice];
    }
    if (!LetTimePass()) return nullptr;
  }
}

bool Simulation::IsReady(const Thread& thread) const {
  if (thread.has_ended || processes_[thread.process].state != State::kRuns) return false;
  return !thread.awaits || thread.deadline <= now_ || thread.awaits();
}

// Advances time until something happens. Returns false if nothing will.
bool Simulation::LetTimePass() {
  int64_t next = events_.empty() ? kNever : events_.front().time;
  for (const auto& thread : threads_) {
    if (thread->has_ended || processes_[thread->process].state != State::kRuns) continue;
    next = std::min(next, thread->deadline);
  }
  if (next == kNever) return false;
  now_ = std::max(now_, next);
  return true;
}

void Simulation::RunEvents() {
  while (!events_.empty() && events_.front().time <= now_) {
    std::pop_heap(events_.begin(), events_.end());
    const auto action = std::move(events_.back().action);
    events_.pop_back();
    if (action) action();
  }
}

int Simulation::StartThread(pthread_t* handle, const pthread_attr_t* attributes,
                            std::function<void*()> work) {
  Thread& thread = NewThread(Self().process, std::move(work));
  const int error = CAFFE_REAL(pthread_create)(&thread.handle, attributes, Begin, &thread);
  if (error != 0) {
    thread.has_ended = true;
    return error;
  }
  *handle = thread.handle;
  Enter();
  return 0;
}

int Simulation::Join(pthread_t handle, void** result) {
  const auto found =
      std::ranges::find_if(threads_, [&](const auto& one) { return one->handle == handle; });
  if (found != threads_.end()) {
    Thread& joined = **found;  // the vector may move when others start threads meanwhile
    Await([&joined] { return joined.has_ended; });
    joined.handle = {};
  }
  return CAFFE_REAL(pthread_join)(handle, result);
}

void Simulation::Lock(pthread_mutex_t* mutex) {
  Thread& self = Self();
  while (CAFFE_REAL(pthread_mutex_trylock)(mutex) == EBUSY) {
    self.waits_for = mutex;
    Await([&self] { return self.waits_for == nullptr; });
  }
  ++self.locks;
}

void Simulation::Unlock(pthread_mutex_t* mutex) {
  CAFFE_REAL(pthread_mutex_unlock)(mutex);
  --Self().locks;
  for (const auto& thread : threads_) {
    if (thread->waits_for == mutex) thread->waits_for = nullptr;
  }
}

bool Simulation::AwaitCondition(const void* condition, pthread_mutex_t* mutex, int64_t deadline) {
  Thread& self = Self();
  self.waits_for = condition;
  Unlock(mutex);
  const bool is_notified = Await([&self] { return self.waits_for == nullptr; }, deadline);
  self.waits_for = nullptr;
  Lock(mutex);
  return is_notified;
}

void Simulation::Notify(const void* condition, bool all) {
  std::vector<Thread*> waiting;
  for (const auto& thread : threads_) {
    if (thread->waits_for == condition) waiting.push_back(thread.get());
  }
  if (waiting.empty()) return;
  if (!all) waiting = {random_.Pick(waiting)};
  for (Thread* thread : waiting) thread->waits_for = nullptr;
}

}  // namespace caffe::fuzz
