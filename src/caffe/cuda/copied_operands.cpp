#include "caffe/cuda/copied_operands.hpp"

#include <memory>
#include <vector>

#include "caffe/cuda/vendor_types.hpp"
#include "caffe/ops/conv.hpp"

namespace caffe::cuda {
namespace {

using ops::Conv;

// Layout of the workspace: images, filter, workspace of the kernel that uses them.
size_t FilterOffset(const CopiedOperands& copied) {
  return AlignWorkspace(copied.images.bytes());
}
size_t BytesOf(const CopiedOperands& copied) {
  return FilterOffset(copied) + AlignWorkspace(copied.filter.bytes());
}

TensorView At(const OperandDesc& desc, const KernelContext& ctx, size_t offset) {
  TensorView view;
  static_cast<TensorDesc&>(view) = desc;
  view.data = static_cast<char*>(ctx.workspace) + offset;
  return view;
}

// Runs `run` on the copies; with `is_gradient` the filter is a result.
void RunOnCopies(const CopiedOperands& copied, bool is_gradient,
                 const std::function<void(const KernelContext&)>& run, const KernelContext& ctx) {
  std::vector<TensorView> inputs(ctx.inputs.begin(), ctx.inputs.end());
  std::vector<TensorView> outputs(ctx.outputs.begin(), ctx.outputs.end());
  const TensorView images = At(copied.images, ctx, 0);
  const TensorView filter = At(copied.filter, ctx, FilterOffset(copied));
  copied.copy_images(ctx, images);
  KernelContext inner = ctx;
  if (is_gradient) {
    inputs[ops::ConvGradWeights::kX] = images;
    outputs[ops::ConvGradWeights::kDw] = filter;
    inner.accumulated = {};
    if (ctx.accumulates(ops::ConvGradWeights::kDbias))
      inner.accumulated.insert(ops::ConvGradWeights::kDbias);
  } else {
    inputs[Conv::kX] = images;
    inputs[Conv::kW] = filter;
    copied.copy_filter(ctx, filter);
  }
  inner.inputs = inputs;
  inner.outputs = outputs;
  inner.workspace = static_cast<char*>(ctx.workspace) + BytesOf(copied);
  run(inner);
  if (is_gradient) copied.take_filter(ctx, filter);
}

}  // namespace

KernelOrRefusal OnCopies(const KernelRequest& request, const Op& op, const CopiedOperands& copied,
                         const MakeConvolution& make, const std::string& suffix) {
  if (BytesOf(copied) > kWorkspaceLimit) return Refusal{"its copies exceed the workspace"};
  const bool is_gradient = op.As<ops::ConvGradWeights>() != nullptr;
  std::vector<OperandDesc> inputs(request.inputs.begin(), request.inputs.end());
  std::vector<OperandDesc> outputs(request.outputs.begin(), request.outputs.end());
  inputs[0] = copied.images;
  (is_gradient ? outputs[ops::ConvGradWeights::kDw] : inputs[Conv::kW]) = copied.filter;
  const auto kept = std::make_shared<Op>(op);  // lives as long as the kernel
  KernelOrRefusal answer = make({*kept, inputs, outputs, request.device, request.settings});
  Kernel* const kernel = std::get_if<Kernel>(&answer);
  if (kernel == nullptr) return answer;
  kernel->workspace_bytes += BytesOf(copied);
  for (std::string& name : kernel->algorithms) name += suffix;
  kernel->run = [run = kernel->run, copied, is_gradient, kept](const KernelContext& ctx) {
    RunOnCopies(copied, is_gradient, run, ctx);
  };
  return answer;
}

}  // namespace caffe::cuda
