// Listener: new connections to a port, until each has proved that it is a rank of the run.
#pragma once

#include <functional>
#include <list>
#include <string>
#include <vector>

#include "caffe/distributed/rendezvous/handshake.hpp"

namespace caffe {

// Anybody can connect, so connections that are not authenticated must cost little and must not end
// the run: each has 10 seconds for its handshake, and if there are too many, the oldest one of the
// host that has most is dropped. A rank whose connection is dropped connects again
// (ConnectToRank).
class Listener {
 public:
  // `port` must outlive this object. `ranks` may connect at the same time, plus 64 connections that
  // are not authenticated.
  Listener(Socket* port, std::string secret, int ranks);

  // Waits up to 0.2 s for activity, also on `descriptors`. Calls `take` for each connection that
  // has proved to be a rank; what it throws ends this call, except ConnectionLost. Throws
  // DeviceError if the process has no descriptors left.
  using Take = std::function<void(const distributed::Hello& hello, IncomingConnection* connection)>;
  void Poll(const std::vector<int>& descriptors, const Take& take);
  // Counts a connection that knows the secret, but belongs to another run.
  void CountRejected(const std::string& what);

  // "; a connection from 10.0.0.1 has another secret, and 3 more", for the error message if not all
  // ranks join. Empty if no connection was rejected.
  std::string rejected() const;
  int rejected_count() const { return rejected_count_; }

 private:
  void Accept();
  void DropOne();
  bool IsDone(IncomingConnection* connection, const Take& take);

  Socket& port_;
  const std::string secret_;
  const size_t most_;
  std::list<IncomingConnection> connections_;  // the oldest first
  std::string rejected_;                       // the first of them
  int rejected_count_ = 0;
  // Time of the last Poll(), and of the first one after a pause of the process.
  Socket::Clock::time_point looked_ = Socket::Clock::now(), woke_{};
};

}  // namespace caffe
