// Training by processes of which some may vanish (docs/clusters.md).
//
//     caffe::RankOptions ranks = *caffe::RanksFromEnvironment();
//     ranks.min_ranks = 4;
//     caffe::TrainByRanks(param, {.ranks = ranks});
#pragma once

#include <functional>
#include <string>

#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"
#include "caffe/ranks.hpp"
#include "caffe/solver.hpp"

namespace caffe {

struct TrainingByRanks {
  RankOptions ranks;
  SolverOptions solver = {};     // without a communicator
  std::string resume_file = {};  // empty: from the beginning
  // Called with each solver before it trains; may be null.
  std::function<void(Solver& solver)> prepare = {};
  // Called with the last one, which has trained to the end, and its net; may be null.
  std::function<void(Solver& solver)> finish = {};
};

// Joins the ranks and trains to max_iter; all ranks make this call.
//
// Where a rank vanishes (its process or machine, not an error that it tells) and at least
// `ranks.min_ranks` are left, rank 0 among them, these come together anew and go on from rank 0's
// memory, as of the last whole iteration, as from a snapshot by another number of ranks. Rank 0
// writes that snapshot, too, also where too few are left, and adds a line to
// <snapshot_prefix>_membership.txt: which iterations how many ranks have made.
//
// Throws what JoinRanks() and the solver throw, and the loss where training cannot go on.
CAFFE_EXPORT void TrainByRanks(const SolverParameter& param, const TrainingByRanks& training);

// Trains by threads of this process as many ranks did whose lines `membership_file` has: each
// number of workers for as many iterations, each going on from the memory of the one before. Ends
// with the same weights where each rank had as many threads. Throws IoError where the file cannot
// be read, and InvalidArgument where it does not begin at iteration 0 or the solver has no
// random_seed. `prepare` and `finish`: see TrainingByRanks, of worker 0.
CAFFE_EXPORT void ReplayRanks(const SolverParameter& param, const SolverOptions& options,
                              const std::string& membership_file,
                              const std::function<void(Solver& solver)>& prepare = {},
                              const std::function<void(Solver& solver)>& finish = {});

}  // namespace caffe
