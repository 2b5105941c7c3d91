// What follows the gradient at a convolution's input: sums of gradients that join, then the
// gradient of a ReLU.
#pragma once

#include "caffe/ops/kernel.hpp"

namespace caffe::cuda {

// Of one epilogue.
inline constexpr int kMostAddedGradients = 4;

// What cuDNN's engines take behind the gradient, so what all kernels of it declare.
inline bool IsGradientEpilogue(const ops::Epilogue& epilogue) {
  const bool has_mask =
      !epilogue.empty() && epilogue.back().kind == ops::Pointwise::Kind::kReluGrad;
  return ops::IsSumReluGrad(epilogue) && (!has_mask || epilogue.back().a >= 0) &&
         static_cast<int>(epilogue.size()) - (has_mask ? 1 : 0) <= kMostAddedGradients;
}

// Output 0, in place. `epilogue` satisfies IsGradientEpilogue(), and what it reads has the output's
// type and layout.
void ApplyGradientEpilogue(const KernelContext& ctx, const ops::Epilogue& epilogue);

}  // namespace caffe::cuda
