// Updater: a rule applied to all parameters of a net.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/net.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/solvers/update_rule.hpp"

namespace caffe {

// Owns the rule's state. Not copyable: its operands point into it. Kernels and memory are found
// once; a step allocates nothing.
class Updater {
 public:
  Updater(const UpdateRule& rule, Net& net);
  Updater(const Updater&) = delete;
  Updater& operator=(const Updater&) = delete;

  // History blobs in Caffe's order: state 0 of every parameter, then state 1, ...
  const std::vector<std::shared_ptr<Blob>>& history() const { return history_; }

  // L2 norm of all gradients together.
  double GradientNorm();
  void Step(const StepScalars& scalars);

 private:
  struct ParamStep {
    std::shared_ptr<Blob> blob;
    bool learns = true;  // false: frozen by lr_mult 0
    std::vector<std::shared_ptr<Blob>> states;
    Kernel update, sum_of_squares;
    std::vector<TensorView> inputs, outputs;
    TensorView sum_output;
  };

  const UpdateRule& rule_;
  std::vector<std::shared_ptr<Blob>> history_;
  std::vector<ParamStep> steps_;
  std::array<double, UpdateRule::kMaxScalars> scalars_{};
  double gradient_sum_ = 0;
};

}  // namespace caffe
