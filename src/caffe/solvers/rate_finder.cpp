#include "caffe/rate_finder.hpp"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <typeinfo>

#include "caffe/error.hpp"
#include "caffe/training_observer.hpp"

namespace caffe {
namespace {

void CheckRateTest(const RateTestOptions& test) {
  Require(test.iterations >= 10, "the rate test has ", test.iterations,
          " iterations; give at least 10");
  Require(std::isfinite(test.lowest) && test.lowest > 0, "the lowest rate is ", test.lowest,
          "; it must be positive");
  Require(std::isfinite(test.highest) && test.highest > test.lowest, "the highest rate is ",
          test.highest, "; it must be above the lowest one, ", test.lowest);
  Require(test.smoothing >= 0 && test.smoothing < 1, "the smoothing is ", test.smoothing,
          "; it must be 0 or more and less than 1");
  Require(test.divergence > 1, "the test ends where the loss is ", test.divergence,
          " times its minimum; that must be more than 1");
}

// Returns the solver's definition with a rising rate, without tests, output files and displays.
SolverParameter SolverOfTest(const SolverParameter& param, const RateTestOptions& test) {
  SolverParameter solver = param;
  for (const char* field : {"max_epoch",
                            "test_net",
                            "test_net_param",
                            "test_state",
                            "test_iter",
                            "test_interval",
                            "metric",
                            "metric_falls",
                            "early_stopping",
                            "early_stopping_delta",
                            "keep_snapshots",
                            "snapshot",
                            "ema_decay",
                            "min_lr",
                            "rampup_interval",
                            "momentum_policy",
                            "weight_decay_policy",
                            "stepvalue",
                            "plateau_winsize",
                            "debug_info"}) {
    const auto* descriptor = SolverParameter::descriptor()->FindFieldByName(field);
    CAFFE_ASSERT(descriptor != nullptr, field);
    SolverParameter::GetReflection()->ClearField(&solver, descriptor);
  }
  solver.set_snapshot_after_train(false);
  solver.set_test_interval(0);
  solver.set_display(0);
  solver.set_average_loss(1);
  solver.set_max_iter(test.iterations);
  solver.set_lr_policy("exp");
  solver.set_base_lr(static_cast<float>(test.lowest));
  solver.set_gamma(
      static_cast<float>(std::pow(test.highest / test.lowest, 1.0 / (test.iterations - 1))));
  return solver;
}

// Records the curve and decides where it ends.
class RateCurve final : public TrainingObserver {
 public:
  explicit RateCurve(const RateTestOptions& options) : options_(options) {}

  void OnIteration(const IterationReport& report) override {
    if (test_.has_diverged) return;
    if (!std::isfinite(report.loss)) {
      test_.has_diverged = true;
      return;
    }
    const double past = options_.smoothing;
    sum_ = past * sum_ + (1 - past) * report.loss;
    const double count = static_cast<double>(test_.points.size()) + 1;
    const double smoothed = sum_ / (1 - std::pow(past, count));
    test_.points.push_back({report.iteration, report.learning_rate, report.loss, smoothed});
    const double least = test_.points[test_.minimum].smoothed_loss;
    if (smoothed < least) test_.minimum = test_.points.size() - 1;
    test_.has_diverged = least > 0 && smoothed > options_.divergence * least;
  }

  RateTest& test() { return test_; }

 private:
  const RateTestOptions options_;
  RateTest test_;
  double sum_ = 0;
};

// Uses the slope between the neighbours of each point before the minimum, over the logarithm of the
// rate. Skips the first tenth, where the mean covers only few losses.
std::optional<size_t> SteepestFall(const RateTest& test) {
  std::optional<size_t> steepest;
  const std::vector<RateTestPoint>& points = test.points;
  if (points.empty()) return steepest;
  double least = -1e-6 * std::abs(points[0].smoothed_loss);  // smaller slopes are rounding errors
  for (size_t i = std::max<size_t>(1, points.size() / 10); i < test.minimum; ++i) {
    const RateTestPoint &before = points[i - 1], &after = points[i + 1];
    const double slope =
        (after.smoothed_loss - before.smoothed_loss) / std::log(after.rate / before.rate);
    if (slope >= least) continue;
    least = slope;
    steepest = i;
  }
  return steepest;
}

}  // namespace

RateTest FindRate(const SolverParameter& param, const SolverOptions& options,
                  const RateTestOptions& test) {
  CheckRateTest(test);
  RateCurve curve(test);
  Solver solver(SolverOfTest(param, test), options);
  solver.AddObserver(&curve);
  solver.SetActionFunction(
      [&] { return curve.test().has_diverged ? SolverAction::STOP : SolverAction::NONE; });
  try {
    solver.Solve();
  } catch (const Error& error) {
    // Non-finite losses or weights throw Error itself; files and definitions throw derived types.
    if (typeid(error) != typeid(Error) || curve.test().points.empty()) throw;
    LOG(INFO) << "The test ends: " << error.what();
    curve.test().has_diverged = true;
  }
  curve.test().steepest = SteepestFall(curve.test());
  return curve.test();
}

}  // namespace caffe
