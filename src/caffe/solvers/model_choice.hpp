// ModelChoice: selects the best model of a run, and decides on early stopping.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "caffe/net.hpp"
#include "caffe/proto/caffe.pb.h"
#include "caffe/solvers/solver_state.hpp"
#include "caffe/training_observer.hpp"

namespace caffe {

// Compares tests by one output, SolverParameter.metric. All ranks have the same reports and make
// the same decisions.
class ModelChoice {
 public:
  // Throws InvalidArgument if no test net has the output, naming those that exist, if there are no
  // tests, and for invalid fields of early stopping and kept snapshots.
  ModelChoice(const SolverParameter& param, const std::vector<std::shared_ptr<Net>>& test_nets);

  bool is_on() const { return !metric_.empty(); }

  // Called before the tests of a run.
  void BeginRun() { has_ended_ = false; }
  // Takes the tests after `iteration` iterations. Returns true if their model is the best so far;
  // never if its metric is NaN.
  bool Take(int iteration, const std::vector<TestReport>& tests);
  // True if the last Take() ended the run through early_stopping.
  bool has_ended() const { return has_ended_; }
  // Returns a text such as "accuracy was best (0.91) after 3000 iterations and not in 5 tests
  // since".
  std::string WhyEnded() const;

  // A run that resumes at `iteration` repeats the test of that iteration, so the stored state
  // excludes that test, unless its model was the best: then repeating it changes nothing.
  void Describe(int iteration, SolverProgress* progress) const;
  void Restore(const SolverProgress& progress);

 private:
  // The value of the metric in a test; may be NaN.
  double ValueOf(const std::vector<TestReport>& tests) const;
  bool IsBetter(double value, double than, double by) const;

  const std::string metric_;  // empty if there is none
  const int early_stopping_;
  const double delta_;
  size_t net_ = 0;     // test net with the output
  size_t output_ = 0;  // index among its outputs
  size_t element_ = 0;
  bool falls_ = false;
  BestTest now_, before_;  // before_: state before the last test
  int judged_ = -1;        // iteration of the last test
  bool has_ended_ = false;
};

}  // namespace caffe
