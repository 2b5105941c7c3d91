#include "caffe/solvers/non_finite.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "caffe/error.hpp"
#include "caffe/solvers/statistics_keeper.hpp"

namespace caffe {

void CheckLoss(const SolverContext& context, const Moment& moment, float loss) {
  if (!std::isnan(loss)) return;
  const std::string cause = DescribeFirstNonFinite(context, moment.has_updated);
  throw Error(StrCat("solver: the loss of iteration ", moment.iteration,
                     " is not a number: ", cause.empty() ? "its cause did not show again" : cause,
                     AboutLastSnapshot(moment.last_snapshot)));
}

void CheckStepped(const SolverContext& context, const Moment& moment) {
  if (!context.training_net.device()->is_host_accessible()) return;
  const std::string found = DescribeNonFiniteWeights(context, moment.has_updated);
  if (found.empty()) return;
  throw Error(StrCat("solver: after iteration ", moment.iteration, ": ", found,
                     AboutLastSnapshot(moment.last_snapshot)));
}

std::string WhyNotFinite(bool has_updated) {
  return has_updated
             ? ": an update was too large; lower base_lr or set clip_gradients"
             : ": no update has changed it, so the weights that were loaded hold it, or its filler "
               "gave it";
}

std::string DescribeFirstNonFinite(const SolverContext& context, bool has_updated,
                                   const TrainingPass* backward) {
  // If layers are split, a rank cannot repeat its pass alone; the first rank that finds something
  // ends the waiting of the others.
  const bool is_split = !context.training_net.SplitParams().empty();
  if (!is_split) context.parallel.LetLayersSum(false);
  const std::string found =
      context.training_net.DescribeFirstNonFinite(WhyNotFinite(has_updated), backward);
  // The batch of a single rank may be the cause.
  return is_split ? found : context.parallel.FirstText(found);
}

std::string DescribeNonFiniteWeights(const SolverContext& context, bool has_updated) {
  // Nearly always all are finite, which can be checked without allocating memory.
  const auto all = [](const Net::LearnableParam&) { return true; };
  if (context.training_net.DescribeNonFiniteParameter(all, "").empty()) return "";
  const std::vector<SyncedTensor*> statistics = RunningStatistics(context.training_net);
  const auto is_trained = [&](const Net::LearnableParam& param) {
    return (param.has_gradient && param.lr_mult != 0) ||
           std::ranges::count(statistics, &param.blob->data_tensor()) > 0;
  };
  return context.training_net.DescribeNonFiniteParameter(is_trained, WhyNotFinite(has_updated));
}

std::string AboutLastSnapshot(int iteration) {
  return iteration >= 0 ? StrCat(" (the last snapshot is of iteration ", iteration, ")") : "";
}

}  // namespace caffe
