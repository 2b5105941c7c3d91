// GradientNorm: the L2 norm of all gradients together, for those who watch a run.
#pragma once

#include <memory>
#include <vector>

#include "caffe/net.hpp"
#include "caffe/net/training_net.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe {

// Finds its kernel and memory once, a few numbers for each parameter; nothing is computed until
// somebody asks.
class GradientNorm {
 public:
  // Of some of the net's parameters. The net outlives this. Throws Unsupported where the device has
  // no kernel for their types.
  GradientNorm(const TrainingNet& net, const std::vector<Net::LearnableParam>& parameters);

  // Of the gradients as they are, scaled or not. Waits for the device.
  double Measure();

 private:
  const TrainingNet net_;
  const std::vector<Net::LearnableParam> parameters_;
  std::shared_ptr<void> memory_, workspace_;
  std::vector<TensorView> inputs_;
  TensorView measures_;
  Kernel kernel_;
};

}  // namespace caffe
