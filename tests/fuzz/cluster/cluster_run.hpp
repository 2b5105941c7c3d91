// One training run of a simulated cluster: ranks with the library's own rendezvous, heartbeats,
// collectives, solvers and snapshots.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "caffe/proto/caffe.pb.h"
#include "tests/fuzz/cluster/planted_communicator.hpp"
#include "tests/fuzz/cluster/simulation.hpp"

namespace caffe::fuzz {

struct Fault {
  enum Kind {
    kNone,
    kKill,      // the process ends without a message
    kPowerCut,  // its machine ends too: no packet says so, and unsynchronized data is lost
    kStop,      // SIGSTOP, until the others have ended
    kPause,     // SIGSTOP for some seconds: nothing may be noticed
    kCut,       // the machine's network fails for ever
    kOutage,    // the same for some seconds
    kPairCut,   // the link between two machines fails
    kReset,     // one connection is reset, as by a firewall
    kError,     // an exception in a layer
    kDiverge,   // a rank's weights change
    kFullDisk,  // the disk is full for some operations
    kKinds
  };
  Kind kind = kNone;
  int rank = 0, other = 0;
  Simulation::Calls calls = Simulation::Calls::kAll;
  int64_t call = 0;      // number of the call of the rank's process in which it happens
  int64_t duration = 0;  // duration of a pause or an outage
  int64_t pass = 0;      // pass of an error; iteration in which weights change
};
const char* NameOf(Fault::Kind kind);

struct ClusterOptions {
  int ranks = 2;
  SolverParameter solver;
  Simulation::Options simulation;  // its disk's folder has the snapshots
  Fault fault;
  Plant plant = Plant::kNone;
};

struct RankResult {
  bool has_joined = false, has_ended = false;
  std::string error;    // empty if it has trained to the end
  std::string weights;  // the bytes of the weights
};

struct ClusterResult {
  std::vector<RankResult> ranks;
  std::vector<int64_t> calls;   // by each rank's process
  int64_t calls_on_disk = 0;    // by rank 0
  bool has_struck = false;      // the fault has happened
  bool had_all_joined = false;  // when the fault happened
  int other = -1;               // other end of a connection that was reset; -1: none
  int64_t seconds = 0;          // from the fault until all others had ended
  bool have_all_ended = true;   // those that could
  uint64_t trace = 0;
};

// Each rank resumes from the newest snapshot on the disk. Ranks count as hanging if they have not
// ended `limit_seconds` after the fault, or after the beginning if there is no fault.
ClusterResult RunCluster(const ClusterOptions& options, int limit_seconds);

// The same training with threads of one process, without a simulation; the weights of worker 0.
std::string WeightsOfThreads(const SolverParameter& solver, int ranks);

}  // namespace caffe::fuzz
