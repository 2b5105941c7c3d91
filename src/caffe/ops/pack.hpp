// Packing: weights and their gradients in the order in which one kernel reads or writes them.
#pragma once

#include <string>

#include "caffe/ops/op.hpp"

namespace caffe::ops {

// (w) -> (bytes):  w as the kernel of the node behind it reads it (Kernel::packed_weights), which
// brings the kernel for this op, too.
struct PackWeights {
  static constexpr std::string_view kName = "PackWeights";
  std::string for_kernel;
  std::string Attributes() const { return "for " + for_kernel; }
};

// (bytes) -> (dw):  the opposite, of a gradient that the kernel of the node before it writes
// (Kernel::packed_gradient).
struct UnpackGradient {
  static constexpr std::string_view kName = "UnpackGradient";
  std::string of_kernel;
  std::string Attributes() const { return "of " + of_kernel; }
};

}  // namespace caffe::ops
