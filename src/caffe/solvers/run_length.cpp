#include "caffe/solvers/run_length.hpp"

#include <limits>

#include "caffe/core/counted.hpp"
#include "caffe/error.hpp"

namespace caffe {

void CheckLength(const SolverParameter& param) {
  Require(param.max_iter() >= 0, "solver: max_iter is ", param.max_iter(),
          "; it must be 0 or more");
  if (!param.has_max_epoch()) return;
  Require(param.max_epoch() > 0, "solver: max_epoch is ", param.max_epoch(),
          "; give the passes over the training data, 1 or more");
  Require(!param.has_max_iter(), "solver: max_epoch is ", param.max_epoch(), " and max_iter ",
          param.max_iter(), "; both say how long training is: leave one of them out");
}

bool TestsEpochs(const SolverParameter& param) {
  return !param.has_test_interval() && (param.has_max_epoch() || !param.metric().empty());
}

RunLength::RunLength(const SolverParameter& param, const Net& train_net, int ranks)
    : given_(param), iterations_(param.max_iter()) {
  if (!param.has_max_epoch() && !TestsEpochs(param)) return;
  const EpochBatches epoch = WithContext(
      param.has_max_epoch()
          ? "solver: max_epoch needs data whose records are counted, or use max_iter"
          : "solver: metric without test_interval tests after each epoch, which needs data whose "
            "records are counted, or set test_interval",
      [&] { return BatchesOfEpoch(train_net); });
  records_ = epoch.records;
  records_per_iteration_ =
      epoch.batch_size * static_cast<uint64_t>(ranks) * static_cast<uint64_t>(param.iter_size());
  if (!param.has_max_epoch()) return;
  const uint64_t all = records_ * static_cast<uint64_t>(param.max_epoch());
  const uint64_t iterations = (all + records_per_iteration_ - 1) / records_per_iteration_;
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int>::max());
  Require(iterations <= kMost, "solver: max_epoch ", param.max_epoch(), " is ", iterations,
          " iterations of ", records_per_iteration_, " of the ", records_, " records; at most ",
          kMost, " can be counted: lower max_epoch");
  iterations_ = static_cast<int>(iterations);
}

std::string RunLength::Describe() const {
  return StrCat("max_epoch ", given_.max_epoch(), ": ", Counted(iterations_, "iteration"), ", ",
                static_cast<double>(records_) / static_cast<double>(records_per_iteration_),
                " for each pass over ", Counted(records_, "record"));
}

SolverParameter RunLength::Resolved() const {
  SolverParameter resolved = given_;
  if (given_.has_max_epoch()) resolved.set_max_iter(iterations_);
  return resolved;
}

bool RunLength::IsTestDue(int iteration) const {
  if (given_.test_interval() > 0) return iteration % given_.test_interval() == 0;
  if (!TestsEpochs(given_)) return false;
  return iteration == 0 || iteration == iterations_ ||
         EpochsAfter(iteration) > EpochsAfter(iteration - 1);
}

uint64_t RunLength::EpochsAfter(int iteration) const {
  return static_cast<uint64_t>(iteration) * records_per_iteration_ / records_;
}

}  // namespace caffe
