#include "caffe/solvers/iteration.hpp"

#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "caffe/error.hpp"
#include "caffe/solvers/debug_info.hpp"
#include "caffe/solvers/non_finite.hpp"
#include "caffe/trace.hpp"

namespace caffe {

Iteration::Iteration(const SolverContext& context, const UpdateRule& rule,
                     const Checkpoints& checkpoints)
    : context_(context),
      checkpoints_(checkpoints),
      updates_(context, rule),
      rates_(context.param, context.parallel.is_root()),
      loss_(context.param.average_loss()) {}

void Iteration::BeginRun() {
  if (!std::exchange(continues_window_, false)) loss_.Clear();
  pace_ = PaceOfRun();
}

// A device whose memory the host cannot access runs ahead of the host, unless each iteration's loss
// or numbers are needed at once. On the CPU, several ranks update parameters while gradients
// arrive, unless the values are inspected, or the update could have to be undone, before it is
// complete. Each rank decides on its own, because the results are bitwise the same.
Iteration::Pace Iteration::PaceOfRun() const {
  const SolverParameter& param = context_.param;
  if (!context_.callbacks.empty() || param.debug_info() || param.lr_policy() == "plateau")
    return Pace::kStep;
  const bool keeps_all = context_.options.keep_all;
  const bool has_ranks = context_.parallel.ranks() > 1;
  if (!context_.training_net.device()->is_host_accessible())
    return has_ranks ? Pace::kStep : keeps_all ? Pace::kLagging : Pace::kReplayed;
  const bool updates_early =
      has_ranks && updates_.updater().has_buckets() && !keeps_all && param.watchdog() != "abort";
  return updates_early ? Pace::kByBucket : Pace::kStep;
}

void Iteration::Run() {
  Pace pace = pace_;
  // Displayed iterations run synchronously, so that loss and blobs belong to the same iteration.
  if (context_.IsDisplayed(number_)) {
    if (pace == Pace::kReplayed) pace = Pace::kLagging;
    if (pace == Pace::kByBucket) pace = Pace::kStep;
  }
  if (pace == Pace::kReplayed) {
    updates_.updater().Schedule(NextStep());
    Launch(&updates_.updater());
    TakeLosses(1);
    updates_.TakeReports(first_);  // of the previous iteration, as in ApplyUpdate
    updates_.SendReport(number_);
  } else {
    const bool is_displayed = context_.IsDisplayed(number_);
    if (pace == Pace::kLagging) {
      Launch(nullptr);
      // While the device computes this iteration, the host processes the previous one.
      TakeLosses(is_displayed ? 0 : 1);
    } else {
      TakeLoss(number_, ForwardBackward(pace));
    }
    if (is_displayed && context_.parallel.is_root())
      context_.reporter.Display(number_, loss_.mean());
    for (const Solver::Callbacks& callback : context_.callbacks) {
      if (callback.on_gradients_ready) callback.on_gradients_ready();
    }
    ApplyUpdate();
  }
  ++number_;
}

void Iteration::Finish() {
  TakeLosses(0);
  updates_.TakeReports(first_);
}

bool Iteration::Break() {
  const bool is_half_updated =
      std::exchange(updates_by_bucket_, false) && context_.parallel.has_updated();
  if (is_half_updated) updates_.updater().Finish();  // so that blobs show the real state
  return is_half_updated;
}

void Iteration::BeginPasses() {
  if (context_.options.keep_all || context_.param.debug_info()) context_.net.ClearParamDiffs();
  updates_.updater().BeginIteration();
}

// `index`: of the pass within the iteration.
TrainingPass Iteration::NextPass(int index) const {
  const bool keeps_diffs = context_.options.keep_all || context_.param.debug_info();
  // Each rank draws its own random numbers.
  const uint64_t number = static_cast<uint64_t>(number_) * context_.param.iter_size() + index;
  const auto ranks = static_cast<uint64_t>(context_.parallel.ranks());
  return {.number = number * ranks + context_.parallel.rank(),
          .ranks = ranks,
          .accumulate = keeps_diffs || index > 0,
          .loss_scale = updates_.loss_scale()};
}

// `update` is appended to the last pass; null if it is launched later.
void Iteration::Launch(AppendedWork* update) {
  BeginPasses();
  for (int i = 0; i < context_.param.iter_size(); ++i) {
    TrainingPass pass = NextPass(i);
    if (i + 1 == context_.param.iter_size()) pass.appended = update;
    context_.training_net.Launch(pass);
  }
  launched_.push_back(number_);
}

void Iteration::TakeLosses(size_t left_under_way) {
  const int passes = context_.param.iter_size();
  while (launched_.size() > left_under_way) {
    float loss = 0;
    for (int i = 0; i < passes; ++i) loss += context_.net.AwaitLoss();
    const int iteration = launched_.front();
    launched_.pop_front();
    TakeLoss(iteration, loss / static_cast<float>(passes));
  }
}

void Iteration::TakeLoss(int iteration, float loss) {
  // With gradient scaling a bad update is skipped; too many in a row end the run.
  if (!updates_.scales_gradients())
    CheckLoss(context_, {iteration, has_updated(), checkpoints_.last()}, loss);
  loss_.Add(loss);
  context_.reporter.TakeLoss(iteration, loss, loss_.mean());
}

float Iteration::LossOfWeights() const {
  float own = 0;
  context_.net.Forward(&own);
  const auto loss = static_cast<float>(context_.parallel.Mean(own));
  CheckLoss(context_, {number_, has_updated(), checkpoints_.last()}, loss);
  return loss;
}

// Returns the mean loss over all ranks and passes.
float Iteration::ForwardBackward(Pace pace) {
  float loss = 0;
  BeginPasses();
  for (int i = 0; i < context_.param.iter_size(); ++i) {
    for (const Solver::Callbacks& callback : context_.callbacks) {
      if (callback.on_forward) callback.on_forward();
    }
    const TrainingPass pass = NextPass(i);
    float own = 0;  // of this pass and rank
    if (i + 1 < context_.param.iter_size()) {
      loss += own = context_.training_net.ForwardBackward(pass);
    } else {
      loss = LastPass(pass, loss, pace, &own);
    }
    if (context_.LogsValues(number_))
      LogForwardValues(context_.net), LogBackwardValues(context_.net);
    for (const Solver::Callbacks& callback : context_.callbacks) {
      if (callback.on_backward) callback.on_backward(own);
    }
  }
  return loss;
}

// Gradients are accumulated over the passes of an iteration, so they are final in the last one.
// `earlier`: sum of the losses of the other passes. Returns the mean over all ranks and passes.
float Iteration::LastPass(TrainingPass pass, float earlier, Pace pace, float* own) {
  const auto of_iteration = [&](float loss) {
    return (earlier + loss) / static_cast<float>(context_.param.iter_size());
  };
  GradientReducer::Update update;
  if (pace == Pace::kByBucket) {
    Updater& updater = updates_.updater();
    updater.Schedule(NextStep());
    updater.Prepare();
    updates_by_bucket_ = true;
    update = [&updater](size_t bucket) { updater.LaunchBucket(bucket); };
  }
  DataParallel::Reduction reduction(context_.parallel, std::move(update));
  pass.listener = reduction.listener();
  pass.on_loss = [&](float loss) { reduction.TakeLoss(of_iteration(loss)); };
  *own = context_.training_net.ForwardBackward(pass);
  return static_cast<float>(reduction.Finish(of_iteration(*own)));
}

void Iteration::ApplyUpdate() {
  const TraceSpan span("update");
  if (std::exchange(updates_by_bucket_, false)) {
    updates_.updater().FinishBuckets();
    updates_.SendReport(number_);
    return updates_.TakeReports(first_);
  }
  updates_.TakeReports(first_);  // of the previous iteration, so no running work is awaited
  std::map<const Blob*, std::vector<double>> before;
  if (context_.LogsValues(number_)) before = ParamValues(context_.net);
  const bool is_displayed = context_.IsDisplayed(number_);
  const StepReport measured = is_displayed ? updates_.Measure() : StepReport();
  // LARC's rates are known only after the update.
  const bool tells_later = is_displayed && context_.param.larc();
  const StepScalars step = rates_.StepAt(number_, loss_.mean());
  if (!tells_later) TellRate(step, measured);
  updates_.updater().Step(step);
  updates_.SendReport(number_);
  if (context_.training_net.device()->is_host_accessible() || context_.LogsValues(number_) ||
      tells_later) {
    updates_.TakeReports(first_);
  }
  if (tells_later) {
    TellRate(step, {.gradient_norm = measured.gradient_norm,
                    .skipped_steps = measured.skipped_steps,
                    .larc = updates_.LarcOf(step.rate)});
  }
  if (context_.LogsValues(number_) && !updates_.was_skipped())
    LogUpdateValues(context_.net, before);
}

StepScalars Iteration::NextStep() {
  const StepScalars step = rates_.StepAt(number_, loss_.mean());
  TellRate(step, {});
  return step;
}

void Iteration::TellRate(const StepScalars& step, const StepReport& measured) {
  context_.reporter.TakeRate(number_, step.rate, updates_.scale(), context_.IsDisplayed(number_),
                             measured);
}

void Iteration::Restore(const SnapshotReader& snapshot) {
  const SolverProgress& progress = snapshot.progress();
  number_ = first_ = progress.iter;
  loss_.Restore(progress.recent_losses);
  continues_window_ = true;
  rates_.Restore(progress);
  updates_.Restore(snapshot);
}

void Iteration::Describe(SolverProgress* progress) const {
  progress->iter = number_;
  progress->recent_losses = loss_.losses();
  rates_.Describe(progress);
  updates_.Describe(progress);
}

}  // namespace caffe
