// ModelChoice: which model of a run is the best, and whether better ones still come.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "caffe/net.hpp"
#include "caffe/proto/caffe.pb.h"
#include "caffe/solvers/solver_state.hpp"
#include "caffe/training_observer.hpp"

namespace caffe {

// Compares tests by one output, SolverParameter.metric. All ranks have the same reports and come to
// the same decisions.
class ModelChoice {
 public:
  // Throws InvalidArgument where no test net has the output, naming those that there are, where
  // nothing is tested, and for fields of early stopping and kept snapshots that cannot be.
  ModelChoice(const SolverParameter& param, const std::vector<std::shared_ptr<Net>>& test_nets);

  bool is_on() const { return !metric_.empty(); }

  // Before the tests of a run.
  void BeginRun() { has_ended_ = false; }
  // The tests after so many iterations. Whether their model is the best so far; one whose metric is
  // not a number never is.
  bool Take(int iteration, const std::vector<TestReport>& tests);
  // Whether the last Take() has ended the run: by early_stopping.
  bool has_ended() const { return has_ended_; }
  // "accuracy was best (0.91) after 3000 iterations and not in 5 tests since".
  std::string WhyEnded() const;

  // A run that goes on at `iteration` makes the test of that iteration again, so what it resumes
  // from is without that test, unless its model was the best: such a test changes nothing when it
  // comes again.
  void Describe(int iteration, SolverProgress* progress) const;
  void Restore(const SolverProgress& progress);

 private:
  // The value of the metric in a test; NaN where it is not a number.
  double ValueOf(const std::vector<TestReport>& tests) const;
  bool IsBetter(double value, double than, double by) const;

  const std::string metric_;  // empty: none
  const int early_stopping_;
  const double delta_;
  size_t net_ = 0;     // whose output it is
  size_t output_ = 0;  // among its outputs
  size_t element_ = 0;
  bool falls_ = false;
  BestTest now_, before_;  // before: as it was before the last test
  int judged_ = -1;        // iteration of that test
  bool has_ended_ = false;
};

}  // namespace caffe
