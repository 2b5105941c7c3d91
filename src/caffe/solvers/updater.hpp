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
#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {

// Owns the rule's state. Not copyable: its operands point into it. Kernels and memory are found
// once; a step allocates nothing. The rule's numbers go to the device with each step, and only the
// functions that return a number wait for it.
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
  // A parameter that learns.
  struct ParamStep {
    std::shared_ptr<Blob> blob;
    size_t index = 0;  // among all learnable parameters
    std::vector<std::shared_ptr<Blob>> states;
    bool has_half_gradient = false;
    Kernel sum_of_squares, dot, max_abs;
    std::array<TensorView, 2> gradient_and_history{};  // of the cosine
  };
  // Numbers of a reduction, in device memory.
  static constexpr int kResults = 4;
  using Results = std::array<double, kResults>;

  void BindTensors();
  const TensorView& GradientOf(size_t step) const { return inputs_[step]; }
  const TensorView& WeightsOf(size_t step) const {
    return outputs_[step * (1 + steps_[step].states.size())];
  }
  void ClearResults();
  // Adds what `kernel` makes of `inputs` to result i, or takes the larger.
  void Reduce(const Kernel& kernel, std::span<const TensorView> inputs, int result);
  Results ReadResults();
  Larc::Norms NormsOf(size_t step, double gradient_scale);
  KernelContext NewContext();

  const UpdateRule& rule_;
  const Larc& larc_;
  std::shared_ptr<Device> device_;
  std::vector<float> larc_cosines_;
  std::vector<std::shared_ptr<Blob>> history_;
  std::vector<ParamStep> steps_;
  Kernel update_;
  std::vector<TensorView> inputs_, outputs_;               // of the update
  TensorView result_{{Shape{}, DType::kDouble}, nullptr};  // of the reduction that runs
  std::vector<double> scalars_;                            // a row per parameter that learns
  std::shared_ptr<void> scalars_on_device_, results_on_device_, workspace_;
};

}  // namespace caffe
