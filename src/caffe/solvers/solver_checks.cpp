#include "caffe/solvers/solver_checks.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "caffe/detection_score.hpp"
#include "caffe/error.hpp"
#include "caffe/solvers/larc.hpp"
#include "caffe/solvers/run_length.hpp"
#include "caffe/solvers/schedule.hpp"
#include "caffe/solvers/solver_lines.hpp"
#include "caffe/solvers/watchdog.hpp"

namespace caffe {
namespace {

// Lengths of a training in lengths of a moving average: too few for its result, and enough.
constexpr double kLeastAverages = 2, kGoodAverages = 20;

// Passes over which stored statistics average.
double LengthOfAverage(const BatchNormParameter& options) {
  return std::round(1 / (1 - static_cast<double>(options.moving_average_fraction())));
}

}  // namespace

void CheckSolver(const SolverParameter& param) {
  Require(param.average_loss() >= 1, "solver: average_loss is ", param.average_loss(),
          "; it must be at least 1");
  Require(param.iter_size() >= 1, "solver: iter_size is ", param.iter_size(),
          "; it must be at least 1");
  CheckLength(param);
  Require(param.snapshot() >= 0, "solver: snapshot is ", param.snapshot(),
          "; set the iterations between snapshots, or 0 for none on the way");
  Require(std::isfinite(param.clip_gradients()) && param.clip_gradients() != 0,
          "solver: clip_gradients is ", param.clip_gradients(),
          "; leave it out or give a positive norm (0 would make every gradient 0)");
  for (const int batches : param.test_iter()) {
    Require(batches >= 1, "solver: test_iter is ", batches, "; it must be at least 1");
  }
  if (param.has_solver_data_type() && param.solver_data_type() != FLOAT) {
    SOLVER_LINE(WARNING)
        << "solver: solver_data_type is " << Type_Name(param.solver_data_type())
        << "; weights and history are kept in float (in double for nets in double)";
  }
  Require(param.eval_type() == "classification" || param.eval_type() == "detection",
          "solver: eval_type is '", param.eval_type(), "'; use classification or detection");
  DetectionScore{param.ap_version()};  // throws for an unknown version
  CheckWatchdog(param);
  CheckSchedule(param);
  ParseLarc(param);
  Require(param.ema_decay() >= 0 && param.ema_decay() < 1, "solver: ema_decay is ",
          param.ema_decay(),
          "; give the weight of the past in the average of the parameters, such "
          "as 0.999, or 0 for no average");
}

void CheckTrainable(const Net& net, bool needs_loss) {
  const auto& params = net.learnable_params();
  Require(!params.empty(), "solver: net '", net.name(),
          "' has no parameters in phase TRAIN; check its include rules");
  if (std::all_of(params.begin(), params.end(), [](const auto& one) { return one.lr_mult == 0; })) {
    SOLVER_LINE(WARNING) << "Net '" << net.name() << "' does not learn: every lr_mult is 0";
  }
  const auto& blobs = net.blob_names();
  const bool has_loss = std::any_of(blobs.begin(), blobs.end(),
                                    [&](const auto& blob) { return net.loss_weight(blob) != 0; });
  Require(has_loss || !needs_loss, "solver: net '", net.name(),
          "' has no loss in phase TRAIN; add a loss layer or a loss_weight");
  if (!has_loss) SOLVER_LINE(WARNING) << "Net '" << net.name() << "' has no loss in phase TRAIN";
}

void CheckStatistics(const SolverParameter& param, const Net& net) {
  if (!param.has_max_iter()) return;
  const double passes = static_cast<double>(param.max_iter()) * param.iter_size();
  const LayerParameter* first = nullptr;
  int slow = 0;
  for (const LayerParameter& layer : net.definition().layer()) {
    const BatchNormParameter& options = layer.batch_norm_param();
    if (layer.type() != "BatchNorm" || options.use_global_stats()) continue;
    if (passes >= kLeastAverages * LengthOfAverage(options)) continue;
    if (first == nullptr) first = &layer;
    ++slow;
  }
  if (first == nullptr) return;
  const double better = std::max(0.5, std::floor(100 * (1 - kGoodAverages / passes)) / 100);
  SOLVER_LINE(WARNING) << "layer '" << first->name() << "' (BatchNorm)"
                       << (slow > 1 ? StrCat(" and ", slow - 1, " more") : "")
                       << ": statistics for testing are averages over about "
                       << LengthOfAverage(first->batch_norm_param())
                       << " passes (moving_average_fraction "
                       << first->batch_norm_param().moving_average_fraction()
                       << "), and this training has " << passes
                       << ": tests use those of weights long past; set batch_norm_param { "
                          "moving_average_fraction: "
                       << better << " }";
}

void CheckSplitTraining(const SolverParameter& param, bool needs_whole_parameters) {
  const std::string is_split = "solver: a layer of the net has parallel: SPLIT_OUTPUT, ";
  Require(!needs_whole_parameters, is_split, "but an update of ", param.type(),
          " needs whole parameters; leave parallel out, or use another solver type");
  Require(!param.debug_info(), is_split,
          "but debug_info shows whole parameters in each step; leave one of them out");
  Require(param.ema_decay() == 0, is_split, "but ema_decay ", param.ema_decay(),
          " averages whole parameters; leave one of them out");
}

}  // namespace caffe
