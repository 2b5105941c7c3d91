// Convolutions whose kernels need images and filter in another form: both are copied to the
// workspace first, and the filter's gradient is copied back from it.
#pragma once

#include <functional>
#include <string>

#include "caffe/ops/kernel.hpp"

namespace caffe::cuda {

struct CopiedOperands {
  OperandDesc images, filter;  // in the other form
  std::function<void(const KernelContext&ctx, const TensorView&to)> copy_images, copy_filter;
  // For a gradient: dw = or += the elements of `from` that belong to it.
  std::function<void(const KernelContext& ctx, const TensorView& from)> take_filter;
};

using MakeConvolution = std::function<KernelOrRefusal(const KernelRequest&)>;

// Wraps the kernel that `make` creates for `op` (Conv or ConvGradWeights, as the request's) on the
// copies. Refuses if the copies exceed the workspace limit. The names of its algorithms end in
// `suffix`.
KernelOrRefusal OnCopies(const KernelRequest& request, const Op& op, const CopiedOperands& copied,
                         const MakeConvolution& make, const std::string& suffix);

}  // namespace caffe::cuda
