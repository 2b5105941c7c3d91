// Checkpoints: the snapshots that a run writes.
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

  // Before hours of training, not after them. Throws IoError where no file can be written or
  // another process writes them, and InvalidArgument where weights or history are too large for
  // their format.
  void CheckWritable(const History& history);
  void CheckSize(const History& history) const;
  // From now on no other process writes snapshots with this prefix. Throws IoError where one does.
  void LockPrefix();
  // Each process has made the same steps from the same weights.
  void AgreeOnWeights(int iteration) const;

  // Whether the solver asks for one after so many iterations.
  bool IsDue(int iteration) const;
  // Throws Error, naming the blob, where weights are not finite: training cannot go on, and no
  // snapshot may hold them. `has_updated`: whether this run has changed them.
  void CheckWeights(int iteration, bool has_updated) const;
  // On rank 0, which returns the state file's name; the others only take note. `check`, of the
  // run's last one, is called on all ranks; see SnapshotOptions. Throws IoError.
  std::string Write(const History& history, SolverProgress progress,
                    const std::function<void()>& check = {});
  // Writes <prefix>_best in the place of the one before. On rank 0; the others do nothing. Throws
  // IoError, and then leaves that one.
  void WriteBest(const History& history, SolverProgress progress);
  // Training goes on from that snapshot.
  void TakeUp(const SolverProgress& progress);
  // Warns where the snapshot from `file` is of a run with another seed, solver or net.
  void SayWhatDiffers(const SolverProgress& progress, const std::string& file) const;

  // The iteration of the last one that was written or restored; -1: none.
  int last() const { return last_; }

 private:
  std::string WriteTo(const std::string& stem, const History& history, SolverProgress progress,
                      const std::function<void()>& check);
  void RemoveOlder(const std::string& newest);

  const SolverContext& context_;
  const std::string prefix_;
  int last_ = -1;
  // State files of this run at the prefix, oldest first, where keep_snapshots limits them.
  std::deque<std::string> kept_;
  std::optional<PrefixLock> lock_;
};

}  // namespace caffe
