// Gradient clipping by the joint norm of all gradients.
#pragma once

#include <memory>
#include <vector>

#include "caffe/net.hpp"
#include "caffe/solvers/bound_op.hpp"

namespace caffe {

class GradientClipper {
 public:
  // A negative limit turns clipping off.
  GradientClipper(const Net& net, double limit);

  // What to multiply the gradients with, as they are now (summed over iter_size passes), so that
  // their L2 norm is at most the limit. Logs when that is not 1.
  double Factor();

 private:
  double limit_;
  std::unique_ptr<SyncedTensor> sum_;
  std::vector<BoundOp> steps_;
};

}  // namespace caffe
