// Rendezvous: how the ranks of a run find each other.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "caffe/core/host_name.hpp"
#include "caffe/distributed/address.hpp"
#include "caffe/distributed/message_stream.hpp"

namespace caffe {

struct RendezvousOptions {
  int rank = 0, ranks = 1;
  // Where rank 0 listens; several addresses of its machine are tried in turn.
  std::vector<Address> root;
  bool ranks_run = false;             // all ranks are known to run: MPI has started them
  std::shared_ptr<Socket> root_port;  // on rank 0: its port if it listens already, otherwise null
  std::string secret;                 // the same on all ranks
  std::string version;                // of the library; the same on all ranks
  std::string host = HostName();      // name of this machine; ranks with equal names share it
  std::string run;                    // identifier of the run; ranks of other runs are rejected
  int port = 0;                       // where other ranks reach this one
  double join_seconds = 120;
  double silence_seconds = 15;  // without a heartbeat until a rank counts as lost
  // Describes what this rank is doing; sent with each heartbeat. Called from another thread; may be
  // null.
  std::function<std::string()> doing;
};

struct Member {
  std::string host;  // name of its machine
  int64_t process = 0;
  Address address;  // where other ranks reach it; rank 0 does not need those of the others
};

// "rank 3 (host b, process 911)".
std::string Describe(int rank, const Member& member);

struct Joined {
  std::vector<Member> members;           // by rank
  std::map<int, MessageStream> streams;  // rank 0's to each other rank, or another rank's to rank 0
};

// Blocks until all ranks have joined. If not, throws on every rank that has joined: InvalidArgument
// if ranks contradict each other, and DeviceError if some do not join in time.
Joined Rendezvous(const RendezvousOptions& options);

}  // namespace caffe
