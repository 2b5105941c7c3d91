#include "caffe/solvers/updates.hpp"

#include <algorithm>
#include <vector>

#include "caffe/error.hpp"
#include "caffe/solvers/gradient_scaling.hpp"
#include "caffe/solvers/larc.hpp"
#include "caffe/solvers/non_finite.hpp"
#include "caffe/solvers/solver_lines.hpp"

namespace caffe {
namespace {

ops::DecideStep DecisionsOf(const SolverContext& context) {
  ops::DecideStep decide;
  decide.larc = ParseLarc(context.param);
  decide.clip_gradients = context.param.clip_gradients();
  decide.scaling =
      MakeGradientScaleRule(context.net.definition(), context.param.precision() == FP16);
  return decide;
}

}  // namespace

Updates::Updates(const SolverContext& context, const UpdateRule& rule)
    : context_(context),
      decide_(DecisionsOf(context)),
      updater_(std::make_unique<Updater>(
          rule, decide_, context.net, context.parallel.Buckets(),
          SumOverRanks{context.parallel.rank(), context.parallel.ranks(),
                       [&context](std::span<double> numbers) { context.parallel.Sum(numbers); }},
          UpdaterOptions{
              .factors = FactorsOfGroups(context.param, context.net, context.parallel.is_root()),
              .ema_decay = context.param.ema_decay()})),
      reports_(context.training_net.device()) {
  // Only displayed iterations are measured. If parameters are split, no rank knows all of them.
  if (context.param.display() <= 0 || !context.training_net.SplitParams().empty()) return;
  std::vector<Net::LearnableParam> learning;
  for (const auto& part : updater_->parts()) {
    for (const LearningParameter& one : part->parameters()) learning.push_back(one.param);
  }
  try {
    norm_.emplace(context.training_net, learning);
  } catch (const Unsupported&) {  // parameters of several types on a GPU
  }
}

StepReport Updates::Measure() {
  StepReport report;
  if (norm_) report.gradient_norm = norm_->Measure() / state_.scale;
  if (decide_.scaling.adaptive) report.skipped_steps = static_cast<int64_t>(state_.skipped_steps);
  return report;
}

std::optional<LarcReport> Updates::LarcOf(double rate) const {
  if (!decide_.larc.is_on || was_skipped() || rate == 0) return std::nullopt;
  std::vector<double> ratios;
  for (const auto& part : updater_->parts()) {
    if (part->parameters().empty()) continue;
    const TensorView& decision = part->decision();
    std::vector<double> numbers(decision.count());
    context_.training_net.device()->CopyToHost(numbers.data(), decision.data, decision.bytes());
    for (size_t i = ops::kFirstRate; i < numbers.size(); ++i) ratios.push_back(numbers[i] / rate);
  }
  if (ratios.empty()) return std::nullopt;
  std::ranges::sort(ratios);
  const size_t middle = ratios.size() / 2;
  const double median =
      ratios.size() % 2 == 1 ? ratios[middle] : (ratios[middle - 1] + ratios[middle]) / 2;
  return LarcReport{ratios.front(), median, ratios.back()};
}

std::optional<double> Updates::scale() const {
  return scales_gradients() ? std::optional(state_.scale) : std::nullopt;
}

void Updates::SendReport(int iteration) {
  if (decide_.decides()) reports_.Send(iteration, updater_->state_on_device());
}

void Updates::TakeReports(int first) {
  const bool is_root = context_.parallel.is_root();
  while (!reports_.is_empty()) {
    const auto [iteration, state] = reports_.Take();
    state_ = state;
    if (state.is_skipped != 0) {
      SOLVER_LINE_IF(WARNING, is_root)
          << "Iteration " << iteration << ": gradients are not finite at gs = " << state.used_scale
          << "; step skipped (" << state.skipped_steps << " so far), now gs = " << state.scale;
      const bool has_updated = iteration - first >= state.skipped_in_a_row;
      const TrainingPass pass{.ranks = static_cast<uint64_t>(context_.parallel.ranks()),
                              .loss_scale = loss_scale()};
      CheckSkippedSteps(state,
                        [&] { return DescribeFirstNonFinite(context_, has_updated, &pass); });
    } else if (state.clip_factor != 1) {
      SOLVER_LINE_IF(INFO, is_root)
          << "Gradient clipping: scaling down gradients (L2 norm " << state.gradient_norm << " > "
          << decide_.clip_gradients << ") by scale factor " << state.clip_factor;
    }
  }
}

void Updates::CheckFits(const SnapshotReader& snapshot, const std::string& file) const {
  snapshot.CheckHistory(updater_->history());
  const size_t cosines = snapshot.progress().larc_cosines.size();
  const size_t params = context_.net.learnable_params().size();
  Require(cosines == 0 || cosines == params, file, ": has ", cosines, " LARC cosines, the net ",
          params, " parameters; it was written by another net");
  snapshot.CheckRawParameters(context_.net.learnable_params());
}

void Updates::Restore(const SnapshotReader& snapshot) {
  while (!reports_.is_empty()) reports_.Take();  // discard old reports
  snapshot.ReadHistory(updater_->history());
  state_ = scales_gradients() ? snapshot.progress().gradient_scale : ops::StepState{};
  decide_.scaling.Adopt(&state_);
  updater_->WriteState(state_);
  std::vector<float> cosines = snapshot.progress().larc_cosines;
  // Runs without larc_turbo save no cosines; start from zero.
  cosines.resize(context_.net.learnable_params().size());
  updater_->WriteCosines(cosines);
  RestoreAverage(snapshot);
}

// The net has the weights of the snapshot's file. If these are an average, training continues with
// the parameters in the state, even if averaging is now off.
void Updates::RestoreAverage(const SnapshotReader& snapshot) {
  WeightAverage* const average = updater_->average();
  if (average != nullptr) {
    average->Reset();
    if (snapshot.progress().averaged_updates > 0)
      average->Begin(snapshot.progress().averaged_updates, state_.skipped_steps);
  }
  snapshot.ReadRawParameters(context_.net.learnable_params());
}

void Updates::Describe(SolverProgress* progress) const {
  progress->gradient_scale = updater_->ReadState();
  if (decide_.larc.is_turbo) progress->larc_cosines = updater_->ReadCosines();
  const WeightAverage* const average = updater_->average();
  if (average == nullptr || !average->has_begun()) return;
  progress->averaged_updates = average->updates(progress->gradient_scale.skipped_steps);
  progress->raw_parameters = CopiesOfParameters(context_.net);
}

}  // namespace caffe
