// Metrics: converts reports of observers to records of metrics.jsonl.
#pragma once

#include <string>

#include "caffe/runs/run.pb.h"
#include "caffe/training_observer.hpp"

namespace caffe::runs {

Metrics MetricsOf(const TrainingStart& start);
// `speed`: over the iterations since the last record. `outputs`: of a displayed iteration.
Metrics MetricsOf(const IterationReport& report, const TrainingSpeed& speed,
                  const std::vector<OutputReport>& outputs);
Metrics MetricsOf(const TestReport& report);
Metrics MetricsOf(const SnapshotReport& report);
Metrics MetricsOf(const TrainingEnd& end);

// Seconds since 1970, with a resolution of one millisecond.
double SecondsNow();

// Returns "finished", "stopped", "early stopping" or "failed".
std::string NameOf(TrainingEnd::Reason reason);

// On one line, without a newline at its end, or on several. Numbers that are not finite become the
// strings "NaN", "Infinity" and "-Infinity".
std::string ToJson(const google::protobuf::Message& message, bool on_one_line);

}  // namespace caffe::runs
