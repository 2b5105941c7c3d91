// What kernels ask that only serve float tensors whose channels lie together.
#pragma once

#include <algorithm>

#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {

inline constexpr char kOnlyFloatChannelsLast[] = "only float tensors with channels last";

inline bool AllFloatChannelsLast(const KernelRequest& request) {
  const auto fits = [](const OperandDesc& operand) {
    return !operand.present ||
           (operand.dtype == DType::kFloat && operand.layout == Layout::kChannelsLast);
  };
  return std::all_of(request.inputs.begin(), request.inputs.end(), fits) &&
         std::all_of(request.outputs.begin(), request.outputs.end(), fits);
}

}  // namespace caffe::cpu
