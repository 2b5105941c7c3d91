// Batch normalisation that writes its result as some channels of a concatenation, and its gradient
// that reads dy as some channels of a concatenation's gradient, so that neither is copied.
#include "caffe/cuda/channel_part.hpp"
#include "caffe/cuda/kernels/batch_norm_passes.cuh"
#include "caffe/ops/convert.hpp"

namespace caffe::cuda {
namespace {

using ops::InsertChannels;

bool IsReluOrNothing(const ops::Epilogue& epilogue) {
  return ops::IsAddRelu(epilogue) && ops::AddedOperand(epilogue) < 0;
}

// The region Norm(x, ...) -> part, mean, variance, InsertChannels(part, whole) -> y, whose output 0
// is y. The other operands have the indices that they have in Norm.
template <typename Norm>
bool IsInto(const Op& op) {
  const auto& region = *op.As<ops::Fused>();
  return region.Is({Norm::kName, InsertChannels::kName}) &&
         IsReluOrNothing(region.Get<Norm>(0).epilogue);
}

template <typename Norm>
KernelOrRefusal MakeInto(const ops::Fused& region, const KernelRequest& request) {
  const auto& insert = region.Get<InsertChannels>(1);
  const ChannelPart place(ChannelsOf(request.outputs[0]), insert.offset, insert.channels);
  Kernel kernel = [&] {
    if constexpr (std::is_same_v<Norm, ops::BatchNorm>) {
      return MakeBatchNormAt(place, region.Get<Norm>(0), request);
    } else {
      return MakeBatchNormInferenceAt(place, region.Get<Norm>(0), request);
    }
  }();
  kernel.run = [run = std::move(kernel.run),
                whole = region.InputOf(1, InsertChannels::kWhole)](const KernelContext& ctx) {
    KeepOtherChannels(ctx, whole);
    run(ctx);
  };
  return kernel;
}

// The region SliceOf(whole) -> dy, BatchNormGrad(x, mean, variance, dy), where the gradient may
// itself be the region that computes the signs of a ReLU.
bool IsOfPart(const Op& op) {
  using Grad = ops::BatchNormGrad;
  const auto& region = *op.As<ops::Fused>();
  const bool is_of_signs =
      region.Is({ops::SliceOf::kName, ops::BatchNormInference::kName, Grad::kName}) &&
      ops::EndsInRelu(region.Get<ops::BatchNormInference>(1).epilogue);
  if (!is_of_signs && !region.Is({ops::SliceOf::kName, Grad::kName})) return false;
  const auto& outputs = region.members.back().outputs;
  const bool has_residual = outputs.size() > Grad::kDresidual &&
                            outputs[Grad::kDresidual].kind != ops::Fused::Place::Kind::kAbsent;
  return region.Get<ops::SliceOf>(0).axis == 1 && !has_residual;
}

KernelOrRefusal MakeOfPart(const ops::Fused& region, const KernelRequest& request) {
  const auto& slice = region.Get<ops::SliceOf>(0);
  GradientIndices indices = GradientIndices::InRegion(region);
  indices.dy = region.InputOf(0, 0);
  const OperandDesc &whole = request.inputs[static_cast<size_t>(indices.dy)],
                    &x = request.inputs[static_cast<size_t>(indices.x)];
  const ChannelPart place(ChannelsOf(whole), slice.offset, x.shape[1]);
  return MakeGradientAt(place, request, indices,
                        region.Get<ops::BatchNormGrad>(region.members.size() - 1).eps);
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::Fused, "batch-norm-into", KernelRank::kGood,
                              MakeInto<ops::BatchNorm>,
                              {.signatures = EverySignature(), .is_for = IsInto<ops::BatchNorm>});
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::Fused, "batch-norm-inference-into",
                              KernelRank::kGood, MakeInto<ops::BatchNormInference>,
                              {.signatures = EverySignature(),
                               .is_for = IsInto<ops::BatchNormInference>});
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::Fused, "batch-norm-grad-of-part",
                              KernelRank::kGood, MakeOfPart,
                              {.signatures = EverySignature(), .is_for = IsOfPart});

}  // namespace
}  // namespace caffe::cuda
