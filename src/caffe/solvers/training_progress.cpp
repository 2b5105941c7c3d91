#include "caffe/solvers/training_progress.hpp"

#include <algorithm>

namespace caffe {
namespace {

// Returns the first layer that produces data without bottoms; its first top is a batch.
const Layer* FindSource(const Net& net) {
  for (const std::shared_ptr<Layer>& layer : net.layers()) {
    if (layer->param().bottom_size() == 0 && layer->param().top_size() > 0) return layer.get();
  }
  return nullptr;
}

double BatchSize(const Net& net, const Layer* source) {
  if (source == nullptr) return 0;
  const std::shared_ptr<Blob> top = net.blob_by_name(source->param().top(0));
  return top->num_axes() > 0 ? static_cast<double>(top->shape(0)) : 0;
}

}  // namespace

void TrainingSpeed::Add(const TrainingSpeed& more) {
  iterations += more.iterations;
  seconds += more.seconds;
  images += more.images;
  if (more.data_wait_seconds) {
    data_wait_seconds = data_wait_seconds.value_or(0) + *more.data_wait_seconds;
  }
}

std::optional<double> TrainingSpeed::ImagesPerSecond() const {
  if (images == 0 || seconds <= 0) return std::nullopt;
  return images / seconds;
}

std::optional<double> TrainingSpeed::DataWaitShare() const {
  if (!data_wait_seconds || seconds <= 0) return std::nullopt;
  return std::clamp(*data_wait_seconds / seconds, 0.0, 1.0);
}

std::vector<OutputReport> OutputsOf(const Net& net) {
  std::vector<OutputReport> outputs;
  for (size_t i = 0; i < net.output_blobs().size(); ++i) {
    const Blob& blob = *net.output_blobs()[i];
    const std::string& name = net.output_names()[i];
    outputs.push_back({.name = name,
                       .loss_weight = net.loss_weight(name),
                       .values = {blob.cpu_data(), blob.cpu_data() + blob.count()}});
  }
  return outputs;
}

TrainingProgress::TrainingProgress(const Net& net, int passes, Clock& clock)
    : net_(net), passes_(passes), clock_(clock), source_(FindSource(net)) {
  for (const std::shared_ptr<Layer>& layer : net.layers()) {
    const auto* supply = dynamic_cast<const DataSupply*>(layer.get());
    if (supply != nullptr) supplies_.emplace_back(layer.get(), supply);
  }
}

void TrainingProgress::Start(const TrainingStart& start) {
  pending_.clear();
  last_report_ = last_display_ = clock_.Now();
  last_display_iteration_ = start.iteration;
  last_wait_ = DataWaitSeconds();
  for (TrainingObserver* observer : observers_) observer->OnStart(start);
}

void TrainingProgress::End(const TrainingEnd& end) {
  for (TrainingObserver* observer : observers_) observer->OnEnd(end);
}

void TrainingProgress::Display(int iteration, float smoothed_loss) {
  const Clock::TimePoint now = clock_.Now();
  const DisplayReport report = {
      .iteration = iteration,
      .iterations = iteration - last_display_iteration_,
      .seconds = std::chrono::duration<double>(now - last_display_).count(),
      .smoothed_loss = smoothed_loss,
      .outputs = OutputsOf(net_)};
  last_display_ = now;
  last_display_iteration_ = iteration;
  for (TrainingObserver* observer : observers_) observer->OnDisplay(report);
}

void TrainingProgress::TakeLoss(int iteration, float loss, float smoothed_loss) {
  Pending& pending = Find(iteration);
  pending.report.loss = loss;
  pending.report.smoothed_loss = smoothed_loss;
  pending.has_loss = true;
  ReportComplete();
}

void TrainingProgress::TakeRate(int iteration, double rate, std::optional<double> gradient_scale,
                                bool displayed, const StepReport& measured) {
  Pending& pending = Find(iteration);
  pending.report.learning_rate = rate;
  pending.report.gradient_scale = gradient_scale;
  pending.report.is_displayed = displayed;
  pending.report.step = measured;
  pending.has_rate = true;
  ReportComplete();
}

void TrainingProgress::Report(const TestReport& test) {
  for (TrainingObserver* observer : observers_) observer->OnTest(test);
}

void TrainingProgress::Report(const SnapshotReport& snapshot) {
  for (TrainingObserver* observer : observers_) observer->OnSnapshot(snapshot);
}

TrainingProgress::Pending& TrainingProgress::Find(int iteration) {
  for (Pending& pending : pending_) {
    if (pending.report.iteration == iteration) return pending;
  }
  return pending_.emplace_back(Pending{.report = {.iteration = iteration}});
}

void TrainingProgress::ReportComplete() {
  while (!pending_.empty() && pending_.front().has_loss && pending_.front().has_rate) {
    IterationReport report = std::move(pending_.front().report);
    pending_.erase(pending_.begin());
    Measure(&report);
    for (TrainingObserver* observer : observers_) observer->OnIteration(report);
  }
}

void TrainingProgress::Measure(IterationReport* report) {
  const Clock::TimePoint now = clock_.Now();
  TrainingSpeed& speed = report->speed;
  speed.iterations = 1;
  speed.seconds = std::chrono::duration<double>(now - last_report_).count();
  speed.images = passes_ * BatchSize(net_, source_);
  const std::optional<double> wait = DataWaitSeconds();
  // Smaller after a resume, which opens the data again.
  if (wait) speed.data_wait_seconds = std::max(0.0, *wait - last_wait_.value_or(0));
  last_report_ = now;
  last_wait_ = wait;
  report->epoch = Epoch();
}

std::optional<double> TrainingProgress::Epoch() const {
  for (const auto& [layer, supply] : supplies_) {
    const auto records = static_cast<double>(supply->records_per_epoch());
    if (records > 0) return static_cast<double>(layer->records_delivered()) / records;
  }
  return std::nullopt;
}

std::optional<double> TrainingProgress::DataWaitSeconds() const {
  std::optional<double> sum;
  for (const auto& [layer, supply] : supplies_) {
    if (const auto wait = supply->wait_seconds()) sum = sum.value_or(0) + *wait;
  }
  return sum;
}

}  // namespace caffe
