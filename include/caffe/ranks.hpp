// Ranks: processes that train one net together, on one machine or several (docs/clusters.md).
//
//     caffe::SolverOptions options;
//     if (const auto ranks = caffe::RanksFromEnvironment()) {
//       options.communicator = caffe::JoinRanks(*ranks);
//     }
//     caffe::Solver(param, options).Solve();
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "caffe/export.hpp"

namespace caffe {

class Communicator;

struct RankOptions {
  // The rank of this process, from 0, and the number of ranks.
  int rank = 0, ranks = 1;
  // The number of ranks on this machine if known, otherwise 0, and the index of this one among
  // them, from 0.
  int local_ranks = 0, local_rank = 0;
  // The number of this rank's GPU, or empty for the CPU. Each rank has its own GPU, or all train on
  // the CPU.
  std::optional<int> gpu;
  // The launcher that started the ranks: "mpirun", "srun" or "torchrun"; empty if none did.
  std::string launcher;
  // "host:port" at which rank 0 listens for the others; the host must be rank 0's. Needed for
  // transport "tcp". torchrun provides it, or else the variable CAFFE_STORE; MPI does not need it.
  std::string store;
  // A text shared by all ranks; a process without it is rejected. If empty: CAFFE_SECRET, or else
  // the user's own secret in the file cortado/secret of $XDG_CACHE_HOME (or $HOME/.cache), which is
  // created if it does not exist. With MPI, rank 0 makes a random one for each run.
  std::string secret;
  // Identifier of the run, the same on all ranks, if the launcher provides one: ranks of another
  // run that connect to the same store are rejected.
  std::string run;
  // Seconds within which all ranks have to join; positive.
  double join_seconds = 120;
  // The engine that carries gradients and decisions between ranks: "mpi", "tcp", or "auto". "auto"
  // means MPI if `launcher` is mpirun or srun and `store` is empty, else TCP. Gradients on GPUs are
  // sent by NCCL instead. Heartbeats use TCP in any case.
  std::string transport = "auto";
};

// Reads the environment of the launcher that started this process: torchrun, mpirun (Open MPI, or
// MPICH and its derivatives) or srun; of nested launchers the innermost. Empty if there is only one
// process. Throws InvalidArgument if they contradict each other, because several processes would
// then each train alone.
CAFFE_EXPORT std::optional<RankOptions> RanksFromEnvironment();

// Waits for all ranks and returns this process's communicator, for a solver on the CPU or on `gpu`.
// Rank 0 logs which engine carries the messages. Throws InvalidArgument if the ranks do not match
// (another number of ranks, version or secret, a GPU used twice, only some on GPUs) or if there is
// neither MPI nor a store, DeviceError if some do not join or the GPUs cannot reach each other, and
// Unsupported if this build or machine lacks NCCL for a GPU, or MPI for that transport.
CAFFE_EXPORT std::shared_ptr<Communicator> JoinRanks(const RankOptions& options);

}  // namespace caffe
