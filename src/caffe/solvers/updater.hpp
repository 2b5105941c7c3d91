// Updater: a rule applied to all parameters of a net.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/net.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/solvers/larc.hpp"
#include "caffe/solvers/update_rule.hpp"

namespace caffe {

// Owns the rule's state. Not copyable: its operands point into it. Kernels and memory are found
// once; a step allocates nothing.
class Updater {
 public:
  Updater(const UpdateRule& rule, const Larc& larc, Net& net);
  Updater(const Updater&) = delete;
  Updater& operator=(const Updater&) = delete;

  // History blobs in Caffe's order: state 0 of every parameter, then state 1, ...
  const std::vector<std::shared_ptr<Blob>>& history() const { return history_; }

  // LARC's running cosines, one per learnable parameter.
  const std::vector<float>& larc_cosines() const { return larc_cosines_; }
  void set_larc_cosines(const std::vector<float>& cosines) { larc_cosines_ = cosines; }

  // L2 norm of all gradients together.
  double GradientNorm();

  struct GradientRange {
    bool is_finite = true;
    double largest_half = 0;  // of layers whose backward_type is FLOAT16
  };
  GradientRange RangeOfGradients();

  void Step(const StepScalars& scalars);

 private:
  struct ParamStep {
    std::shared_ptr<Blob> blob;
    bool learns = true;  // false: frozen by lr_mult 0
    std::vector<std::shared_ptr<Blob>> states;
    bool has_half_gradient = false;
    Kernel update, sum_of_squares, dot, max_abs;
    std::vector<TensorView> inputs, outputs;           // of the update
    std::array<TensorView, 2> gradient_and_history{};  // of the cosine
  };

  static void BindTensors(ParamStep& step);
  // The number that `kernel` makes of `inputs`, going on from `start`.
  double Reduce(const Kernel& kernel, std::span<const TensorView> inputs, double start);
  Larc::Norms NormsOf(ParamStep& step, double gradient_scale);

  const UpdateRule& rule_;
  const Larc& larc_;
  std::vector<float> larc_cosines_;
  std::vector<std::shared_ptr<Blob>> history_;
  std::vector<ParamStep> steps_;
  std::array<double, UpdateRule::kMaxScalars> scalars_{};
  double reduced_ = 0;
  TensorView reduced_view_;
};

}  // namespace caffe
