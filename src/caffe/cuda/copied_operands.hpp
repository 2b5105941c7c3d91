// Convolutions by kernels that want images and filter in another form: both are copied into the
// workspace first, and the filter's gradient is taken from there.
#pragma once

#include <functional>
#include <string>

#include "caffe/ops/kernel.hpp"

namespace caffe::cuda {

struct CopiedOperands {
  OperandDesc images, filter;  // in the other form
  std::function<void(const KernelContext&ctx, const TensorView&to)> copy_images, copy_filter;
  // Of a gradient: dw = or += what belongs to it.
  std::function<void(const KernelContext& ctx, const TensorView& from)> take_filter;
};

using MakeConvolution = std::function<KernelOrRefusal(const KernelRequest&)>;

// What the kernel computes that `make` makes of `op` (Conv or ConvGradWeights, as the request's) on
// the copies. Refuses where these need more than the workspace's limit. The names of its algorithms
// end in `suffix`.
KernelOrRefusal OnCopies(const KernelRequest& request, const Op& op, const CopiedOperands& copied,
                         const MakeConvolution& make, const std::string& suffix);

}  // namespace caffe::cuda
