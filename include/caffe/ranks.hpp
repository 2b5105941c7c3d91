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
  // This process, from 0, and how many there are.
  int rank = 0, ranks = 1;
  // How many of them share this machine, where that is known, else 0; and which of those this one
  // is, from 0.
  int local_ranks = 0, local_rank = 0;
  // The number of the GPU that this rank trains on; nothing: the CPU. Each rank has a GPU of its
  // own, or all train on the CPU.
  std::optional<int> gpu;
  // "host:port": where rank 0 listens for the others. It must be a host of rank 0. Empty where the
  // launcher does not tell.
  std::string store;
  // The same text on all ranks; whoever does not know it is refused. If empty, CAFFE_SECRET, else
  // the user's own: the file cortado/secret in $XDG_CACHE_HOME (or $HOME/.cache), which is made
  // where there is none.
  std::string secret;
  // Identity of the run, the same on all ranks, where the launcher gives one: ranks of another run
  // that come to the same store are refused.
  std::string run;
  // Seconds within which all ranks have to come; positive.
  double join_seconds = 120;
  // How gradients and decisions travel: "tcp", or "mpi", where mpirun has started the ranks and the
  // build has MPI. Ranks look after each other by TCP in any case.
  std::string transport = "tcp";
};

// As whoever has started this process says: torchrun, mpirun (Open MPI, or MPICH and its kin) or
// srun, the innermost one. Nothing where there is one process only. Throws InvalidArgument where
// they contradict each other, so that several processes would each train alone.
CAFFE_EXPORT std::optional<RankOptions> RanksFromEnvironment();

// This process's end, once all ranks have come: for a solver on the CPU, or on `gpu`. Throws
// InvalidArgument where the ranks do not fit together (another number of ranks, another version,
// another secret, a GPU used twice, some on GPUs and some not), DeviceError where some do not come
// or the GPUs do not reach each other, and Unsupported for a GPU where this build or machine has no
// NCCL, or for a transport where it has no MPI.
CAFFE_EXPORT std::shared_ptr<Communicator> JoinRanks(const RankOptions& options);

}  // namespace caffe
