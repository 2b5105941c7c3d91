// Packing: weights in the order in which one kernel reads them.
#pragma once

#include <string>

#include "caffe/ops/op.hpp"

namespace caffe::ops {

// (w) -> (bytes):  w as the kernel of the node behind it wants it (Kernel::packed_weights), which
// brings the kernel for this op, too.
struct PackWeights {
  static constexpr std::string_view kName = "PackWeights";
  std::string for_kernel;
  std::string Attributes() const { return "for " + for_kernel; }
};

}  // namespace caffe::ops
