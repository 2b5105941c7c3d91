// Packing: stores weights and their gradients in the element order that a kernel reads or writes.
#pragma once

#include <string>

#include "caffe/ops/op.hpp"

namespace caffe::ops {

// (w) -> (bytes):  w in the order of Kernel::packed_weights of the node that follows. That node's
// kernel also provides the kernel for this op.
struct PackWeights {
  static constexpr std::string_view kName = "PackWeights";
  std::string for_kernel;
  std::string order;  // PackedOperand::order
  std::string Attributes() const { return "for " + for_kernel; }
};

// (bytes) -> (dw):  the inverse, for a gradient in the order of Kernel::packed_gradient of the
// preceding node.
struct UnpackGradient {
  static constexpr std::string_view kName = "UnpackGradient";
  std::string of_kernel;
  std::string Attributes() const { return "of " + of_kernel; }
};

}  // namespace caffe::ops
