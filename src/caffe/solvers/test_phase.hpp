// TestPhase: the test nets of a solver, and what it says of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "caffe/net.hpp"
#include "caffe/solvers/non_finite.hpp"
#include "caffe/solvers/solver_context.hpp"

namespace caffe {

class TestPhase {
 public:
  // Test nets share the parameters of the train net, which was made with `train`. Throws what nets
  // throw.
  TestPhase(const SolverContext& context, const NetOptions& train);

  const std::vector<std::shared_ptr<Net>>& nets() const { return nets_; }

  // One pass of each net, reported for the iteration. Between batches asks whether to stop, on all
  // ranks in the same place, and returns false where the answer was yes.
  // Where a loss or an output is not finite: throws Error if the trained weights are not either,
  // else warns, because training does not depend on it.
  bool Run(const Moment& moment, const std::function<bool()>& stops);
  // As after restoring a snapshot.
  void ResumeFrom(uint64_t seed);

 private:
  bool RunOne(size_t index, const Moment& moment, const std::function<bool()>& stops);
  void TakeNonFinite(size_t index, const Moment& moment, const std::string& what);
  // `batches`: what each of them is remembered by.
  void Report(size_t index, int iteration, const std::vector<std::vector<double>>& batches);

  const SolverContext& context_;
  std::vector<std::shared_ptr<Net>> nets_;
  std::vector<uint64_t> tested_;  // batches by all ranks, of each net
};

}  // namespace caffe
