// Checkpoints: the snapshots that a run writes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/solvers/snapshot.hpp"
#include "caffe/solvers/solver_context.hpp"

namespace caffe {

class Checkpoints {
 public:
  // Throws IoError where the solver writes snapshots on its way and none can be written.
  explicit Checkpoints(const SolverContext& context);

  // Before hours of training, not after them. Throws IoError where no file can be written, and
  // InvalidArgument where weights or history are too large for their format.
  void CheckWritable(const std::vector<std::shared_ptr<Blob>>& history) const;
  void CheckSize(const std::vector<std::shared_ptr<Blob>>& history) const;
  // Each process has made the same steps from the same weights.
  void AgreeOnWeights(int iteration) const;

  // On rank 0, which returns the state file's name; the others only take note. Throws IoError.
  std::string Write(const std::vector<std::shared_ptr<Blob>>& history, SolverProgress progress);

  // The iteration of the last one that was written or restored; -1: none.
  int last() const { return last_; }
  void set_last(int iteration) { last_ = iteration; }

 private:
  const SolverContext& context_;
  const std::string prefix_;
  int last_ = -1;
};

}  // namespace caffe
