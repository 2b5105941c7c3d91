// Updates: the steps of a run, and what devices decide in them.
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

// A device decides for itself whether a step is skipped, by which factor gradients are clipped and
// what the next gradient scale is; the host hears of it later, without waiting.
class Updates {
 public:
  // Throws InvalidArgument for fields of gradient scaling that cannot be.
  Updates(const SolverContext& context, const UpdateRule& rule);

  Updater& updater() const { return *updater_; }
  bool scales_gradients() const { return decide_.scaling.is_on(); }
  // The gradient scale as last reported; nothing where there is none.
  std::optional<double> scale() const;
  // A factor of all losses, in the device's memory; null where there is none.
  const double* loss_scale() const { return scales_gradients() ? updater_->loss_scale() : nullptr; }
  // The gradients as they are, before their update, and the steps skipped so far. Waits for the
  // device.
  StepReport Measure();
  // After an update at that rate; nothing where LARC is off or the step was skipped. Waits for the
  // device.
  std::optional<LarcReport> LarcOf(double rate) const;
  bool was_skipped() const { return state_.is_skipped != 0; }

  // After an update has been launched.
  void SendReport(int iteration);
  // Waits for all reports that were sent. Warns of skipped steps, and throws Error after too many.
  // `first`: the run's first iteration.
  void TakeReports(int first);

  // Throws InvalidArgument where `file` is of another net; nothing has changed then.
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
