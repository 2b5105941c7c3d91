// Simulation: threads of several processes, of which exactly one runs at a time, in simulated time.
//
//     Simulation simulation({.seed = 7});
//     simulation.AddProcess([] { ... });  // its threads, mutexes, sleeps and sockets are simulated
//     simulation.EndAt(simulation.now() + 60 * kSecond);
//     const bool have_all_ended = simulation.Run();
//
// simulated_calls.cpp stands between the processes and the system: there, each call that waits or
// that other threads can notice goes through the simulation.
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

// The seed decides which thread goes on where several could. Where no thread can, time passes until
// one can, so that an hour takes no longer than what happens in it.
class Simulation {
 public:
  struct Options {
    uint64_t seed = 1;
    // How likely a thread is interrupted where it makes a call.
    double interruptions = 0.1;
    SimulatedNetwork::Options network;
    std::string disk_folder;  // existing; what processes write below it is on the simulated disk
    SimulatedDisk::Options disk;
  };
  // One of a process's. Members are the simulation's own.
  struct Thread {
    int process = 0;
    pthread_t handle = {};
    sem_t turn = {};
    // What it waits for; it is ready without.
    std::function<bool()> awaits;
    int64_t deadline = kNever;
    const void* waits_for = nullptr;  // a mutex or a condition
    int locks = 0;                    // mutexes that it holds
    bool has_ended = false;
    std::function<void*()> work;
  };

  explicit Simulation(const Options& options);
  // Threads that have not ended stay where they are, for as long as the program lives.
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // Processes are numbered from 0; each begins when Run() is called.
  void AddProcess(std::function<void()> work);
  // Returns when all processes have ended that are neither killed nor stopped, or at the time that
  // EndAt() gave last. Whether they have all ended.
  bool Run();
  void EndAt(int64_t time) { end_ = time; }

  int64_t now() const { return now_; }
  RandomNumbers& random() { return random_; }
  SimulatedNetwork& network() { return network_; }
  SimulatedDisk& disk() { return disk_; }
  // Of all choices so far: equal for runs in which the same happened.
  uint64_t trace() const { return trace_; }

  bool has_ended(int process) const { return processes_.at(process).main->has_ended; }
  // Calls that a process has made: all, or those that change the disk.
  enum class Calls { kAll, kOnDisk };
  int64_t calls(int process, Calls kind = Calls::kAll) const {
    return processes_.at(process).calls[static_cast<int>(kind)];
  }
  // `action` is called in that call of the process, the first being 1.
  void AtCall(int process, Calls kind, int64_t number, std::function<void()> action);
  // `action`, which may be null, at that time; threads look again for what they wait for.
  void At(int64_t time, std::function<void()> action);

  // As soon as none of its threads holds a mutex, which other processes of a simulation share.
  // Its connections end as the system ends them.
  void Kill(int process);
  // The same, but that its connections stay, and that it may continue. `then`, which may be null,
  // is called once it is stopped.
  void Stop(int process, std::function<void()> then = nullptr);
  void Continue(int process);
  // Stops it for so long.
  void Pause(int process, int64_t duration);

  // --- For the calls of simulated threads.

  // The simulation and the thread that make this call; null outside of a simulation.
  static Simulation* Current();
  static Thread& Self();
  // Counts a call; others may come first.
  void Enter(Calls kind = Calls::kAll);
  // Waits until `is_there` or the deadline; whether it is there.
  bool Await(std::function<bool()> is_there, int64_t deadline = kNever);
  int StartThread(pthread_t* handle, const pthread_attr_t* attributes, std::function<void*()> work);
  int Join(pthread_t handle, void** result);
  void Lock(pthread_mutex_t* mutex);
  void Unlock(pthread_mutex_t* mutex);
  // False after the deadline.
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
    int64_t action_at = -1;  // of its calls
    std::function<void()> action, when_stopped;
  };
  struct Event {
    int64_t time;
    uint64_t number;  // events of one time keep their order
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
