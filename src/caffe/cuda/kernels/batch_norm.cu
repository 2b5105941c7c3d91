// Batch normalisation of tensors in memory of their own; batch_norm_parts.cu has the parts of
// concatenations.
#include "caffe/cuda/kernels/batch_norm_passes.cuh"

namespace caffe::cuda {
namespace {

KernelOrRefusal MakeBatchNorm(const ops::BatchNorm& op, const KernelRequest& request) {
  return MakeBatchNormAt(Apart(), op, request);
}

KernelOrRefusal MakeBatchNormInference(const ops::BatchNormInference& op,
                                       const KernelRequest& request) {
  return MakeBatchNormInferenceAt(Apart(), op, request);
}

KernelOrRefusal MakeBatchNormInferenceGrad(const ops::BatchNormInferenceGrad& op,
                                           const KernelRequest& request) {
  return VisitFloat(request.inputs[0].dtype, [&]<typename T>(TypeTag<T>) {
    using A = Accum<T>;
    return NormaliseByGiven<T>(
        Apart(), {}, request.inputs[0], [eps = static_cast<A>(op.eps)](const KernelContext& ctx) {
          return Normalisation<A>{
              {}, InputNumbers(ctx, 1), InputNumbers(ctx, 2), InputNumbers(ctx, 3), {}, eps};
        });
  });
}

KernelOrRefusal MakeBatchNormGrad(const ops::BatchNormGrad& op, const KernelRequest& request) {
  using Grad = ops::BatchNormGrad;
  return MakeGradientAt(Apart(), request,
                        {.x = Grad::kX,
                         .mean = Grad::kMean,
                         .variance = Grad::kVariance,
                         .dy = Grad::kDy,
                         .gamma = Grad::kGamma,
                         .y = Grad::kY,
                         .beta = -1,
                         .dresidual = Grad::kDresidual},
                        op.eps);
}

// The region BatchNormInference[relu](x, mean, variance, gamma, beta) -> y,
// BatchNormGrad(x, mean, variance, dy, gamma, y).
bool IsOfSigns(const Op& op) {
  const auto& region = *op.As<ops::Fused>();
  return region.Is({ops::BatchNormInference::kName, ops::BatchNormGrad::kName}) &&
         ops::EndsInRelu(region.Get<ops::BatchNormInference>(0).epilogue);
}

KernelOrRefusal MakeGradientOfSigns(const ops::Fused& op, const KernelRequest& request) {
  return MakeGradientAt(Apart(), request, GradientIndices::InRegion(op),
                        op.Get<ops::BatchNormGrad>(1).eps);
}

// Processes rows of channel packs.
KernelOrRefusal MakeGradientOfSignsByRows(const ops::Fused& op, const KernelRequest& request) {
  const Covered view = ChannelsOf(request.inputs[0]);
  const bool has_rows =
      VisitFloat(request.inputs[0].dtype, [&]<typename T>(TypeTag<T>) { return HasRows<T>(view); });
  if (!has_rows) return Refusal{"channels do not lie last in whole packs of 16 bytes"};
  return MakeGradientOfSigns(op, request);
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::BatchNorm, "batch-norm",
                              KernelRank::kReference, MakeBatchNorm, {.fuses = ops::IsAddRelu});
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::BatchNormGrad, "batch-norm-grad",
                              KernelRank::kReference, MakeBatchNormGrad);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::Fused, "batch-norm-relu-grad",
                              KernelRank::kGood, MakeGradientOfSignsByRows,
                              {.signatures = EverySignature(), .is_for = IsOfSigns});
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::Fused, "batch-norm-relu-grad-by-elements",
                              KernelRank::kGood, MakeGradientOfSigns,
                              {.signatures = EverySignature(), .is_for = IsOfSigns});
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::BatchNormInference, "batch-norm-inference",
                              KernelRank::kReference, MakeBatchNormInference,
                              {.fuses = ops::IsAddRelu});
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::BatchNormInferenceGrad,
                              "batch-norm-inference-grad", KernelRank::kReference,
                              MakeBatchNormInferenceGrad);

}  // namespace
}  // namespace caffe::cuda
