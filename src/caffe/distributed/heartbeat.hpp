// Heartbeat: monitors whether the ranks of a run are still there.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "caffe/core/clock.hpp"
#include "caffe/distributed/rendezvous.pb.h"
#include "caffe/distributed/rendezvous/rendezvous.hpp"

namespace caffe {

// Each rank has a connection to rank 0, with a heartbeat every second in both directions. Rank 0
// decides which rank was lost first and tells all others, so that all errors name the same rank.
class Heartbeat {
 public:
  // Throws what Rendezvous() does, which goes by the system's time. All later times are the
  // clock's.
  explicit Heartbeat(RendezvousOptions options, Clock& clock = Clock::Steady());
  // Leaves the run; other ranks do not count this rank as lost. Waits until they have received this
  // message: for silence_seconds at most, or 3 s if a rank was lost.
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  int rank() const { return options_.rank; }
  const std::vector<Member>& members() const { return members_; }
  std::string Describe(int rank) const { return caffe::Describe(rank, members_.at(rank)); }

  // `call` runs once, with the error that all ranks throw, when a rank is lost: immediately if that
  // has happened, else later on the heartbeat's thread.
  void OnLoss(std::function<void(const std::exception_ptr&)> call);
  // Reports that `rank` (which may be this one) is lost. Waits for rank 0's decision on which rank
  // was lost first, and returns the error that all ranks throw.
  std::exception_ptr ReportLoss(int rank, const std::string& why);
  void ThrowIfLost();
  // When rank 0, which had done its work, stopped looking after the others; never on rank 0.
  std::optional<Clock::TimePoint> WhenRank0Left();

 private:
  Heartbeat(RendezvousOptions options, Joined joined, Clock& clock);

  // Another rank: on rank 0 all of them, elsewhere only rank 0.
  struct Peer {
    MessageStream stream;
    Clock::TimePoint heard;
    std::string doing = {};
    bool is_gone = false, is_silent = false;
  };

  void Run();
  bool RunOnce();
  void Poll() const;
  bool Leave(bool is_lost);
  void DiscountOwnPause();
  void SendHeartbeats();
  void CheckSilence();
  void Read(int rank, Peer* peer);
  void Take(int rank, Peer* peer, const distributed::Notice& notice);
  void Send(const distributed::Notice& notice);
  void Suspect(const std::string& why);
  void CheckSuspicion();
  // A rank that is lost, and why.
  struct Loss {
    int rank = 0;
    std::string why;
  };
  Loss SeenByOthers(const Loss& loss) const;
  void ReportToRoot(const Loss& noticed);
  void SetLoss(const Loss& loss);
  void Wake() const;

  const RendezvousOptions options_;
  Clock& clock_;
  std::vector<Member> members_;
  std::map<int, Peer> peers_;  // used only by the thread
  int wake_ = -1;              // an eventfd
  const int64_t process_;
  Clock::TimePoint end_ = Clock::TimePoint::max();  // of the wait for answers, after it has left
  Clock::TimePoint looked_ = clock_.Now(), told_{};
  // The last pause in which the process was stopped, and when it ended.
  Clock::Duration slept_{};
  Clock::TimePoint woke_{};
  // Why this rank suspects rank 0 to be lost, and since when.
  std::optional<std::pair<std::string, Clock::TimePoint>> suspicion_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stops_ = false;
  std::optional<Clock::TimePoint> rank0_left_at_;
  std::vector<std::pair<int, std::string>> reports_;  // losses that rank 0 has not been told yet
  std::exception_ptr loss_;
  std::function<void(const std::exception_ptr&)> on_loss_;
  std::thread thread_;
};

}  // namespace caffe
