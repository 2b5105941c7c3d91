#include "caffe/solvers/model_choice.hpp"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "caffe/core/counted.hpp"
#include "caffe/core/nearest_name.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

// Name of SSD's mean average precision, regardless of the output's name in the net.
constexpr const char* kDetectionMetric = "detection_eval";

// One number of a test net's outputs, with its name in metrics.jsonl.
struct MetricPlace {
  std::string name;
  size_t net = 0, output = 0, element = 0;
  bool falls = false;
};

std::vector<MetricPlace> MetricsOfNets(const std::vector<std::shared_ptr<Net>>& nets,
                                       bool is_detection) {
  std::vector<MetricPlace> places;
  for (size_t net = 0; net < nets.size(); ++net) {
    for (size_t i = 0; i < nets[net]->output_names().size(); ++i) {
      const std::string& name = nets[net]->output_names()[i];
      const int64_t count = is_detection ? 1 : nets[net]->output_blobs()[i]->count();
      const bool falls = !is_detection && nets[net]->loss_weight(name) != 0;
      for (int64_t element = 0; element < count; ++element) {
        places.push_back({.name = count == 1 ? name : StrCat(name, "[", element, "]"),
                          .net = net,
                          .output = i,
                          .element = static_cast<size_t>(element),
                          .falls = falls});
      }
    }
  }
  return places;
}

MetricPlace FindMetric(const std::string& metric, const std::vector<MetricPlace>& places,
                       bool is_detection) {
  for (const MetricPlace& place : places) {
    if (place.name == metric) return place;
  }
  if (is_detection && metric == kDetectionMetric && !places.empty()) return places.front();
  constexpr size_t kMostNamed = 20;
  std::vector<std::string> names;
  std::string list;
  for (const MetricPlace& place : places) {
    if (std::ranges::count(names, place.name) > 0) continue;
    names.push_back(place.name);
    if (names.size() <= kMostNamed) list += (list.empty() ? "" : ", ") + place.name;
  }
  if (names.size() > kMostNamed) list += StrCat(" and ", names.size() - kMostNamed, " more");
  const std::string near = NearestName(metric, names);
  throw InvalidArgument(StrCat("solver: metric is '", metric,
                               "', which no test net has; use one of their outputs: ", list,
                               near.empty() ? "" : "; did you mean '" + near + "'?"));
}

void CheckFields(const SolverParameter& param) {
  Require(param.early_stopping() >= 0, "solver: early_stopping is ", param.early_stopping(),
          "; give the tests without a better metric after which training ends, or 0 for never");
  Require(std::isfinite(param.early_stopping_delta()) && param.early_stopping_delta() >= 0,
          "solver: early_stopping_delta is ", param.early_stopping_delta(),
          "; it must be 0 or more");
  Require(param.keep_snapshots() >= 0, "solver: keep_snapshots is ", param.keep_snapshots(),
          "; give how many of the newest are kept, or 0 for all");
  for (const auto& [field, is_set] :
       {std::pair{"early_stopping", param.early_stopping() > 0},
        std::pair{"early_stopping_delta", param.has_early_stopping_delta()},
        std::pair{"metric_falls", param.has_metric_falls()}}) {
    Require(!is_set || !param.metric().empty(), "solver: ", field,
            " is set, but metric is not; name the output of a test net by which models are "
            "compared, such as metric: \"accuracy\"");
  }
}

}  // namespace

ModelChoice::ModelChoice(const SolverParameter& param,
                         const std::vector<std::shared_ptr<Net>>& test_nets)
    : metric_(param.metric()),
      early_stopping_(param.early_stopping()),
      delta_(param.early_stopping_delta()) {
  CheckFields(param);
  if (!is_on()) return;
  Require(!test_nets.empty(), "solver: metric is '", metric_,
          "', but the run has no tests; set test_interval, and test_iter or a test net whose data "
          "layer counts its records");
  // May be a short trial of a long training, so this is a warning, not an error.
  LOG_IF(WARNING, param.test_interval() > param.max_iter() && param.max_iter() > 0)
      << "solver: metric is '" << metric_ << "', but test_interval " << param.test_interval()
      << " is more than the " << param.max_iter()
      << " iterations of the run, so that no model will be kept as the best";
  const bool is_detection = param.eval_type() == "detection";
  const MetricPlace place =
      FindMetric(metric_, MetricsOfNets(test_nets, is_detection), is_detection);
  net_ = place.net;
  output_ = place.output;
  element_ = place.element;
  falls_ = param.has_metric_falls() ? param.metric_falls() : place.falls;
}

double ModelChoice::ValueOf(const std::vector<TestReport>& tests) const {
  const TestReport& test = tests.at(net_);
  if (!test.detections.empty()) return test.detections.at(output_).mean_average_precision;
  // A net's outputs may change size.
  const std::vector<float>& values = test.outputs.at(output_).values;
  return element_ < values.size() ? values[element_] : std::numeric_limits<double>::quiet_NaN();
}

// False if the value is NaN.
bool ModelChoice::IsBetter(double value, double than, double by) const {
  return falls_ ? value < than - by : value > than + by;
}

bool ModelChoice::Take(int iteration, const std::vector<TestReport>& tests) {
  if (!is_on()) return false;
  const double value = ValueOf(tests);
  if (now_.metric && iteration == now_.iteration && !IsBetter(value, *now_.metric, 0)) return false;
  if (iteration != judged_) before_ = now_;
  judged_ = iteration;
  const bool is_first = !now_.metric && !std::isnan(value);
  const bool is_best = is_first || (now_.metric && IsBetter(value, *now_.metric, 0));
  const bool counts = is_first || (now_.metric && IsBetter(value, *now_.metric, delta_));
  now_.tests_since = counts ? 0 : now_.tests_since + 1;
  if (is_best) {
    now_.metric = value;
    now_.iteration = iteration;
  }
  has_ended_ = early_stopping_ > 0 && now_.tests_since >= early_stopping_;
  return is_best;
}

std::string ModelChoice::WhyEnded() const {
  const std::string since = Counted(now_.tests_since, "test");
  if (!now_.metric) return StrCat(metric_, " was not a number in ", since);
  return StrCat(metric_, " is best after ", Counted(now_.iteration, "iteration"), " (",
                *now_.metric, "), and was not better ",
                delta_ > 0 ? StrCat("by more than ", delta_, " ") : std::string(), "in the last ",
                since);
}

void ModelChoice::Describe(int iteration, SolverProgress* progress) const {
  const bool comes_again = iteration == judged_ && now_.iteration != iteration;
  progress->best_test = comes_again ? before_ : now_;
}

void ModelChoice::Restore(const SolverProgress& progress) {
  now_ = before_ = progress.best_test;
  judged_ = -1;
  has_ended_ = false;
}

}  // namespace caffe
