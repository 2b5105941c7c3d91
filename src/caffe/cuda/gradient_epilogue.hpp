// Epilogue of the gradient at a convolution's input: sums with joining gradients, then the gradient
// of a ReLU.
#pragma once

#include "caffe/ops/kernel.hpp"

namespace caffe::cuda {

// Maximum in one epilogue.
inline constexpr int kMostAddedGradients = 4;

// True for the epilogues that cuDNN's engines support after the gradient, which all kernels for it
// therefore declare.
inline bool IsGradientEpilogue(const ops::Epilogue& epilogue) {
  const bool has_mask =
      !epilogue.empty() && epilogue.back().kind == ops::Pointwise::Kind::kReluGrad;
  return ops::IsSumReluGrad(epilogue) && (!has_mask || epilogue.back().a >= 0) &&
         static_cast<int>(epilogue.size()) - (has_mask ? 1 : 0) <= kMostAddedGradients;
}

// Changes output 0 in place. `epilogue` must satisfy IsGradientEpilogue(), and its operands must
// have the output's type and layout.
void ApplyGradientEpilogue(const KernelContext& ctx, const ops::Epilogue& epilogue);

}  // namespace caffe::cuda
