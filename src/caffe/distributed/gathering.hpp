// Rendezvous of the ranks of a run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "caffe/core/host_name.hpp"
#include "caffe/distributed/address.hpp"
#include "caffe/distributed/message_stream.hpp"

namespace caffe {

struct MembershipOptions {
  int rank = 0, ranks = 1;
  Address store;                  // where rank 0 listens
  std::string secret;             // the same on all ranks
  std::string version;            // of the library; all need the same
  std::string host = HostName();  // this machine's name; ranks that give the same share a machine
  std::string run;  // identity of the run, the same on all ranks; ranks of others are refused
  int port = 0;     // where other ranks reach this one
  double join_seconds = 120;
  double silence_seconds = 15;  // without a heartbeat until a rank counts as lost
  // Describes what this rank is doing; sent with each heartbeat. Called from another thread; may be
  // null.
  std::function<std::string()> doing;
};

struct Member {
  std::string host;  // its name
  int64_t process = 0;
  Address address;  // where other ranks reach it; rank 0 does not need those of the others
};

// "rank 3 (host b, process 911)".
std::string Describe(int rank, const Member& member);

struct Gathered {
  std::vector<Member> members;           // by rank
  std::map<int, MessageStream> streams;  // rank 0's to each other rank, or another one's to rank 0
};

// Blocks until all ranks have joined. Throws InvalidArgument if ranks
// contradict each other, and DeviceError if some do not join in time; on every rank that has
// joined.
Gathered Gather(const MembershipOptions& options);

}  // namespace caffe
