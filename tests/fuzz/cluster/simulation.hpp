// Simulation: threads of several processes in simulated time; exactly one runs at a time.
//
//     Simulation simulation({.seed = 7});
//     simulation.AddProcess([] { ... });  // its threads, mutexes, sleeps and sockets are simulated
//     simulation.EndAt(simulation.now() + 60 * kSecond);
//     const bool have_all_ended = simulation.Run();
//
// simulated_calls.cpp sits between the processes and the system: each call that waits, or that
// other threads can notice, goes through the simulation.
#pragma once

#include <pthread.h>
#include <semaphore.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "tests/fuzz/cluster/simulated_disk.hpp"
#include "tests/fuzz/cluster/simulated_network.hpp"
#include "tests/fuzz/dag/random_numbers.hpp"

namespace caffe::fuzz {

constexpr int64_t kSecond = 1'000'000'000;  // simulated time is in nanoseconds
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// The seed decides which thread continues if several could. If no thread can, time passes until one
// can, so an hour takes only as long as the events in it.
class Simulation {
 public:
  struct Options {
    uint64_t seed = 1;
    // The probability that a thread is interrupted at a call.
    double interruptions = 0.1;
    SimulatedNetwork::Options network;
    std::string disk_folder;  // must exist; files written below it are on the simulated disk
    SimulatedDisk::Options disk;
  };
  // A thread of a process. The members are the simulation's own.
  struct Thread {
    int process = 0;
    pthread_t handle = {};
    sem_t turn = {};
    // The condition that it waits for; without one it is ready.
    std::function<bool()> awaits;
    int64_t deadline = kNever;
    const void* waits_for = nullptr;  // a mutex or a condition
    int locks = 0;                    // number of mutexes that it holds
    bool has_ended = false;
    std::function<void*()> work;
  };

  explicit Simulation(const Options& options);
  // Threads that have not ended stay suspended as long as the program lives.
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // Processes are numbered from 0; each begins when Run() is called.
  void AddProcess(std::function<void()> work);
  // Returns when all processes that are neither killed nor stopped have ended, or at the time last
  // given to EndAt(). Returns whether they have all ended.
  bool Run();
  void EndAt(int64_t time) { end_ = time; }

  int64_t now() const { return now_; }
  RandomNumbers& random() { return random_; }
  SimulatedNetwork& network() { return network_; }
  SimulatedDisk& disk() { return disk_; }
  // A hash of all choices so far: equal for runs in which the same happened.
  uint64_t trace() const { return trace_; }

  bool has_ended(int process) const { return processes_.at(process).main->has_ended; }
  // Calls that a process has made: all of them, or only those that change the disk.
  enum class Calls { kAll, kOnDisk };
  int64_t calls(int process, Calls kind = Calls::kAll) const {
    return processes_.at(process).calls[static_cast<int>(kind)];
  }
  // Calls `action` in the call of the process with this number, counted from 1.
  void AtCall(int process, Calls kind, int64_t number, std::function<void()> action);
  // Calls `action`, which may be null, at that time; then waiting threads check their conditions.
  void At(int64_t time, std::function<void()> action);

  // Takes effect as soon as none of its threads holds a mutex, because all processes share them.
  // The process's connections end as the system would end them.
  void Kill(int process);
  // The same, except that its connections stay, and that it may continue. `then`, which may be
  // null, is called once it is stopped.
  void Stop(int process, std::function<void()> then = nullptr);
  void Continue(int process);
  // Stops it for this duration.
  void Pause(int process, int64_t duration);

  // --- For the calls of simulated threads.

  // The simulation and the thread that make this call; null outside a simulation.
  static Simulation* Current();
  static Thread& Self();
  // Counts a call; other threads may run first.
  void Enter(Calls kind = Calls::kAll);
  // Waits until `is_there` returns true or until the deadline. Returns whether it is true.
  bool Await(std::function<bool()> is_there, int64_t deadline = kNever);
  int StartThread(pthread_t* handle, const pthread_attr_t* attributes, std::function<void*()> work);
  int Join(pthread_t handle, void** result);
  void Lock(pthread_mutex_t* mutex);
  void Unlock(pthread_mutex_t* mutex);
  // Returns false after the deadline.
  bool AwaitCondition(const void* condition, pthread_mutex_t* mutex, int64_t deadline);
  void Notify(const void* condition, bool all);

 private:
  enum class State { kRuns, kStopped, kKilled };
  struct Process {
    Thread* main = nullptr;
    State state = State::kRuns, wanted = State::kRuns;
    bool will_continue = false;
    int64_t calls[2] = {};  // by kind
    Calls kind_of_action = Calls::kAll;
    int64_t action_at = -1;  // number of the call
    std::function<void()> action, when_stopped;
  };
  struct Event {
    int64_t time;
    uint64_t number;  // keeps the order of simultaneous events
    std::function<void()> action;
    bool operator<(const Event& other) const {
      return time != other.time ? time > other.time : number > other.number;
    }
  };

  static void* Begin(void* thread);
  Thread& NewThread(int process, std::function<void*()> work);
  void Switch();
  Thread* Next();
  bool IsReady(const Thread& thread) const;
  bool LetTimePass();
  void RunEvents();
  void Change();
  bool HoldsLocks(int process) const;
  bool IsOver() const;
  void GiveTurn(Thread* thread);

  const Options options_;
  RandomNumbers random_;
  SimulatedNetwork network_;
  SimulatedDisk disk_;
  int64_t now_ = kSecond;
  int64_t end_ = kNever;
  int64_t switches_ = 0;
  uint64_t trace_ = 0, event_count_ = 0;
  std::vector<Process> processes_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<Event> events_;  // a heap
  sem_t is_over_ = {};
};

}  // namespace caffe::fuzz
