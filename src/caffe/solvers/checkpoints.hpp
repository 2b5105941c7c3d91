// Checkpoints: writes the snapshots of a run.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "caffe/solvers/prefix_lock.hpp"
#include "caffe/solvers/solver_context.hpp"
#include "caffe/solvers/solver_state.hpp"

namespace caffe {

class Checkpoints {
 public:
  explicit Checkpoints(const SolverContext& context);

  // Called before training, to fail early. Throws IoError if no file can be written or another
  // process writes snapshots there, and InvalidArgument if weights or history are too large for
  // their format.
  void CheckWritable(const History& history);
  void CheckSize(const History& history) const;
  // Keeps other processes from writing snapshots with this prefix. Throws IoError if one already
  // does.
  void LockPrefix();
  // Checks that each process has made the same updates from the same weights.
  void AgreeOnWeights(int iteration) const;

  // True if the solver asks for a snapshot after `iteration` iterations.
  bool IsDue(int iteration) const;
  // Throws Error, naming the blob, if weights are not finite: training cannot continue, and no
  // snapshot may contain them. `has_updated`: true if this run has changed them.
  void CheckWeights(int iteration, bool has_updated) const;
  // Writes on rank 0, which returns the state file's name; other ranks only record the iteration.
  // `check`, for the run's last snapshot, is called on all ranks; see SnapshotOptions. Throws
  // IoError.
  std::string Write(const History& history, SolverProgress progress,
                    const std::function<void()>& check = {});
  // Replaces <prefix>_best. Writes on rank 0 only. Throws IoError, and then keeps the previous one.
  void WriteBest(const History& history, SolverProgress progress);
  // Continues training from that snapshot.
  void TakeUp(const SolverProgress& progress);
  // Warns if the snapshot in `file` comes from a run with another seed, solver or net.
  void SayWhatDiffers(const SolverProgress& progress, const std::string& file) const;

  // The iteration of the last snapshot that was written or restored; -1: none.
  int last() const { return last_; }

 private:
  std::string WriteTo(const std::string& stem, const History& history, SolverProgress progress,
                      const std::function<void()>& check);
  void RemoveOlder(const std::string& newest);

  const SolverContext& context_;
  const std::string prefix_;
  int last_ = -1;
  // State files of this run with the prefix, oldest first, if keep_snapshots limits them.
  std::deque<std::string> kept_;
  std::optional<PrefixLock> lock_;
};

}  // namespace caffe
