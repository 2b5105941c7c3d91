// Arrivals: new connections to a port, until each has proved that it is a rank of the run.
#pragma once

#include <functional>
#include <list>
#include <string>
#include <vector>

#include "caffe/distributed/handshake.hpp"

namespace caffe {

// Anybody can connect, so strangers cost little and end nothing: each connection has 10 seconds for
// its handshake, and when there are too many, the oldest one of the hosts that have most is
// dropped. A rank whose connection is dropped comes again (Enter).
class Arrivals {
 public:
  // `port` must outlive this. `ranks`: how many may come at a time, beside strangers.
  Arrivals(Socket* port, std::string secret, int ranks);

  // Waits up to 0.2 s for news, also on these descriptors. `take` is called for each connection
  // that has proved to be a rank; what it throws ends this call, except ConnectionLost. Throws
  // DeviceError if the process has no descriptors left.
  using Take = std::function<void(const distributed::Hello& hello, Arrival* arrival)>;
  void Poll(const std::vector<int>& descriptors, const Take& take);
  // Counts a rank that has proved to know the secret, but belongs to another run.
  void AddStranger(const std::string& what);

  // "; a connection from 10.0.0.1 has another secret, and 3 more": for the error of a run that does
  // not come about. Empty without strangers.
  std::string strangers() const;
  int stranger_count() const { return stranger_count_; }

 private:
  void Accept();
  void DropOne();
  bool IsDone(Arrival* arrival, const Take& take);

  Socket& port_;
  const std::string secret_;
  const size_t most_;
  std::list<Arrival> arrivals_;  // the oldest first
  std::string strangers_;        // the first of them
  int stranger_count_ = 0;
  // When Poll() last looked, and when it looked for the first time after a pause of the process.
  Socket::Clock::time_point looked_ = Socket::Clock::now(), woke_{};
};

}  // namespace caffe
