// GradientNorm: the L2 norm of all gradients together, for monitoring.
#pragma once

#include <memory>
#include <vector>

#include "caffe/net.hpp"
#include "caffe/net/training_net.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe {

// Finds its kernel and allocates a few numbers per parameter once; computes only on request.
class GradientNorm {
 public:
  // For some of the net's parameters. The net must outlive this object. Throws Unsupported if the
  // device has no kernel for their types.
  GradientNorm(const TrainingNet& net, const std::vector<Net::LearnableParam>& parameters);

  // Norm of the gradients as stored, scaled or not. Waits for the device.
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
