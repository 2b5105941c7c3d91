#include "caffe/runs/metrics.hpp"

#include <google/protobuf/util/json_util.h>

#include <chrono>
#include <memory>

#include "caffe/core/value_range.hpp"
#include "caffe/error.hpp"
#include "caffe/io/utf8.hpp"

namespace caffe::runs {
namespace {

Metrics Make(const char* event, int iteration) {
  Metrics metrics;
  metrics.set_event(event);
  metrics.set_iteration(iteration);
  metrics.set_time(SecondsNow());
  return metrics;
}

// An output of more values, such as a map of scores, is recorded by its range.
constexpr size_t kMostValues = 128;

void AddRange(const OutputReport& output, Metrics* metrics) {
  const ValueRange range = RangeOf(output.values);
  auto& numbers = *metrics->mutable_outputs();
  numbers[output.name + "[smallest]"] = range.smallest;
  numbers[output.name + "[mean]"] = range.mean;
  numbers[output.name + "[largest]"] = range.largest;
}

void AddOutputs(const std::vector<OutputReport>& outputs, Metrics* metrics) {
  for (const OutputReport& output : outputs) {
    if (output.values.size() > kMostValues) {
      AddRange(output, metrics);
      continue;
    }
    for (size_t i = 0; i < output.values.size(); ++i) {
      const std::string name =
          output.values.size() == 1 ? output.name : StrCat(output.name, "[", i, "]");
      (*metrics->mutable_outputs())[name] = output.values[i];
    }
  }
}

}  // namespace

Metrics MetricsOf(const TrainingStart& start) {
  Metrics metrics = Make("start", start.iteration);
  metrics.set_resumed_from(start.resumed_from);
  return metrics;
}

Metrics MetricsOf(const IterationReport& report, const TrainingSpeed& speed,
                  const std::vector<OutputReport>& outputs) {
  Metrics metrics = Make("train", report.iteration);
  if (report.epoch) metrics.set_epoch(*report.epoch);
  metrics.set_loss(report.loss);
  metrics.set_smoothed_loss(report.smoothed_loss);
  metrics.set_learning_rate(static_cast<float>(report.learning_rate));
  if (report.gradient_scale) {
    metrics.set_gradient_scale(static_cast<float>(*report.gradient_scale));
  }
  if (report.step.gradient_norm)
    metrics.set_gradient_norm(static_cast<float>(*report.step.gradient_norm));
  if (report.step.skipped_steps)
    metrics.set_skipped_steps(static_cast<float>(*report.step.skipped_steps));
  if (const std::optional<LarcReport>& larc = report.step.larc) {
    metrics.set_larc_smallest(static_cast<float>(larc->smallest));
    metrics.set_larc_median(static_cast<float>(larc->median));
    metrics.set_larc_largest(static_cast<float>(larc->largest));
  }
  if (const auto images = speed.ImagesPerSecond()) {
    metrics.set_images_per_second(static_cast<float>(*images));
  }
  if (const auto share = speed.DataWaitShare()) {
    metrics.set_data_wait_share(static_cast<float>(*share));
  }
  AddOutputs(outputs, &metrics);
  return metrics;
}

Metrics MetricsOf(const TestReport& report) {
  Metrics metrics = Make("test", report.iteration);
  metrics.set_net(report.net);
  metrics.set_loss(static_cast<float>(report.loss));
  AddOutputs(report.outputs, &metrics);
  for (const DetectionReport& detection : report.detections) {
    (*metrics.mutable_outputs())[detection.name] =
        static_cast<float>(detection.mean_average_precision);
  }
  return metrics;
}

Metrics MetricsOf(const SnapshotReport& report) {
  Metrics metrics = Make("snapshot", report.iteration);
  metrics.set_file(report.state_file);
  return metrics;
}

Metrics MetricsOf(const TrainingEnd& end) {
  Metrics metrics = Make("end", end.iteration);
  metrics.set_reason(NameOf(end.reason));
  metrics.set_error(end.error);
  return metrics;
}

double SecondsNow() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<double>(std::chrono::floor<std::chrono::milliseconds>(now).count()) / 1000;
}

std::string NameOf(TrainingEnd::Reason reason) {
  switch (reason) {
    case TrainingEnd::kFinished:
      return "finished";
    case TrainingEnd::kStopped:
      return "stopped";
    case TrainingEnd::kEarlyStopping:
      return "early stopping";
    case TrainingEnd::kFailed:
      break;
  }
  return "failed";
}

std::string ToJson(const google::protobuf::Message& message, bool on_one_line) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.add_whitespace = !on_one_line;
  const std::unique_ptr<google::protobuf::Message> valid(message.New());
  valid->CopyFrom(message);
  MakeUtf8(valid.get());
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(*valid, &json, options);
  CAFFE_ASSERT(status.ok(), status.ToString());
  return json;
}

}  // namespace caffe::runs
