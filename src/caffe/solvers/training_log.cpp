#include "caffe/solvers/training_log.hpp"

#include <sstream>

#include "caffe/core/value_range.hpp"
#include "caffe/solvers/solver_lines.hpp"

namespace caffe {
namespace {

// "    Train net output #0: loss = 0.3 (* 1 = 0.3 loss)", one line per value.
void LogOutputs(const char* title, const std::vector<OutputReport>& outputs) {
  int index = 0;
  for (const OutputReport& output : outputs) {
    const float weight = output.loss_weight;
    if (output.values.size() > kMostLinesOfValues) {
      SOLVER_LINE(INFO) << "    " << title << " net output #" << index << ": " << output.name
                        << " = " << TextOfRange(output.values);
      index += static_cast<int>(output.values.size());
      continue;
    }
    for (const float value : output.values) {
      std::ostringstream loss;
      if (weight != 0) loss << " (* " << weight << " = " << weight * value << " loss)";
      SOLVER_LINE(INFO) << "    " << title << " net output #" << index++ << ": " << output.name
                        << " = " << value << loss.str();
    }
  }
}

}  // namespace

void TrainingLog::OnDisplay(const DisplayReport& report) {
  SOLVER_LINE(INFO) << "Iteration " << report.iteration << " ("
                    << (report.seconds > 0 ? report.iterations / report.seconds : 0) << " iter/s, "
                    << report.seconds << "s/" << options_.display
                    << " iters), loss = " << report.smoothed_loss;
  LogOutputs("Train", report.outputs);
}

void TrainingLog::OnIteration(const IterationReport& report) {
  if (!report.is_displayed) return;
  std::ostringstream scale;
  if (report.gradient_scale) scale << ", gs = " << *report.gradient_scale;
  SOLVER_LINE(INFO) << "Iteration " << report.iteration << ", lr = " << report.learning_rate
                    << scale.str();
  std::ostringstream step;
  if (report.step.gradient_norm) step << ", gradient norm = " << *report.step.gradient_norm;
  if (report.step.skipped_steps) step << ", skipped steps = " << *report.step.skipped_steps;
  if (const std::optional<LarcReport>& larc = report.step.larc) {
    step << ", LARC ratios = " << larc->smallest << " to " << larc->largest << ", median "
         << larc->median;
  }
  SOLVER_LINE_IF(INFO, !step.str().empty()) << "Iteration " << report.iteration << step.str();
}

void TrainingLog::OnTest(const TestReport& report) {
  if (options_.test_loss) SOLVER_LINE(INFO) << "Test loss: " << report.loss;
  for (size_t i = 0; i < report.detections.size(); ++i) {
    const DetectionReport& detection = report.detections[i];
    if (options_.per_class) {
      for (const auto& [label, precision] : detection.average_precisions) {
        SOLVER_LINE(INFO) << "class AP " << label << ": " << precision;
      }
    }
    SOLVER_LINE(INFO) << "    Test net output mAP #" << i << ": " << detection.name << " = "
                      << detection.mean_average_precision;
  }
  LogOutputs("Test", report.outputs);
}

}  // namespace caffe
