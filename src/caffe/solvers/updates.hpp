// Updates: the optimizer's updates of a run, and the device's decisions about them.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "caffe/ops/update.hpp"
#include "caffe/solvers/gradient_norm.hpp"
#include "caffe/solvers/solver_context.hpp"
#include "caffe/solvers/solver_state.hpp"
#include "caffe/solvers/step_reports.hpp"
#include "caffe/solvers/update_rule.hpp"
#include "caffe/solvers/updater.hpp"
#include "caffe/training_observer.hpp"

namespace caffe {

// A device decides itself whether an update is skipped, by which factor gradients are clipped, and
// the next gradient scale; the host gets a report later, without waiting.
class Updates {
 public:
  // Throws InvalidArgument for invalid fields of gradient scaling.
  Updates(const SolverContext& context, const UpdateRule& rule);

  Updater& updater() const { return *updater_; }
  bool scales_gradients() const { return decide_.scaling.is_on(); }
  // The gradient scale as last reported; empty without gradient scaling.
  std::optional<double> scale() const;
  // A factor for all losses, in device memory; null if there is none.
  const double* loss_scale() const { return scales_gradients() ? updater_->loss_scale() : nullptr; }
  // Measures the gradients before their update, and returns the updates skipped so far. Waits for
  // the device.
  StepReport Measure();
  // Called after an update with that rate; empty if LARC is off or the update was skipped. Waits
  // for the device.
  std::optional<LarcReport> LarcOf(double rate) const;
  bool was_skipped() const { return state_.is_skipped != 0; }

  // Called after an update has been launched.
  void SendReport(int iteration);
  // Waits for all reports that were sent. Warns of skipped updates, and throws Error after too
  // many. `first`: the run's first iteration.
  void TakeReports(int first);

  // Throws InvalidArgument if `file` belongs to another net; changes nothing.
  void CheckFits(const SnapshotReader& snapshot, const std::string& file) const;
  void Restore(const SnapshotReader& snapshot);
  void Describe(SolverProgress* progress) const;

 private:
  void RestoreAverage(const SnapshotReader& snapshot);

  const SolverContext& context_;
  ops::DecideStep decide_;
  std::unique_ptr<Updater> updater_;
  std::optional<GradientNorm> norm_;
  StepReports reports_;
  ops::StepState state_;  // as last reported
};

}  // namespace caffe
