// A convolution's data gradient by any kernel, and a pass over it for the sums of a normalisation's
// gradient: used if cuDNN has no engine for both (conv_sums_cudnn.cpp). Also computes the
// normalisation's gradient from such sums.
#include <cmath>

#include "caffe/cuda/kernels/batch_norm_elements.cuh"
#include "caffe/cuda/kernels/channel_sums.cuh"
#include "caffe/ops/conv_grad_norm.hpp"

namespace caffe::cuda {
namespace {

using ops::BatchNormGradOfSums;
using ops::ConvGradNorm;

// Returns the first candidate for the gradient alone.
KernelOrRefusal PlainGradient(const ConvGradNorm& op, const KernelRequest& request) {
  const Op conv(op.conv);
  const DType type = request.inputs[0].dtype;
  const Signature signature{type, type == DType::kDouble ? type : DType::kFloat};
  const auto& candidates = KernelRegistry::Get().Candidates(DeviceKind::kCuda, conv.type());
  KernelOrRefusal answer = Refusal{"there is no kernel of a convolution's data gradient"};
  for (const KernelCandidate& candidate : candidates) {
    if (!candidate.Serves(signature)) continue;
    answer = candidate.factory({conv, request.inputs.first(2), request.outputs.first(1),
                                request.device, request.settings});
    if (std::holds_alternative<Kernel>(answer)) break;
  }
  return answer;
}

template <typename A>
struct StoreSumAndDot {
  Numbers variance, sum, dot;
  A eps;

  __device__ void operator()(int64_t c, const Sums<2, A>& sums) const {
    sum.Set(c, sums.values[0]);
    dot.Set(c, sums.values[1] / std::sqrt(variance.Get<A>(c) + eps));
  }
};

// Applies the ReLU's gradient to the dz that the convolution has written, and computes its sums.
template <typename T>
struct MaskAndSum {
  using A = Accum<T>;
  using Norm = ConvGradNorm;
  ChannelSums<T> sums;
  Covered view;
  A eps;

  size_t signs_bytes() const { return AffineConstants<A>::Bytes(view.covered); }
  size_t workspace_bytes() const { return signs_bytes() + sums.workspace_bytes(); }

  void Run(const KernelContext& ctx) const {
    const T* x = ctx.input(Norm::kX).as<const T>();
    T* dz = ctx.output(Norm::kDz).as<T>();
    const Normalisation<A> normalisation{
        InputNumbers(ctx, Norm::kMean),  InputNumbers(ctx, Norm::kVariance), {},
        InputNumbers(ctx, Norm::kGamma), InputNumbers(ctx, Norm::kBeta),     eps};
    const StoreSumAndDot<A> store{normalisation.variance, OutputNumbers(ctx, Norm::kSum),
                                  OutputNumbers(ctx, Norm::kDot), eps};
    const AffineConstants<A> signs{static_cast<A*>(ctx.workspace), view.covered};
    void* const partial = static_cast<char*>(ctx.workspace) + signs_bytes();
    if (HasRows<T>(view) && AreAligned<T>({x, dz}) && PlainNormalisation<A>::Fits(normalisation)) {
      sums.ByRows(
          ctx, partial,
          GradientSumsOfRows<T, kPackSize<T>, Signs::kOfX, true>{
              {x, dz, nullptr}, normalisation.mean, PlainNormalisation<A>(normalisation), dz},
          store);
      return;
    }
    ForEach(ctx, view.covered, StoreAffine<A>{normalisation, signs});
    sums.ByElements(ctx, partial, AddGradients<T>{{x, dz, nullptr, signs}, normalisation.mean, dz},
                    store);
  }
};

KernelOrRefusal MakeConvGradNorm(const ConvGradNorm& op, const KernelRequest& request) {
  KernelOrRefusal conv = PlainGradient(op, request);
  Kernel* const kernel = std::get_if<Kernel>(&conv);
  if (kernel == nullptr) return conv;
  const Covered view = ChannelsOf(request.outputs[0]);
  VisitFloat(request.outputs[0].dtype, [&]<typename T>(TypeTag<T>) {
    const MaskAndSum<T> sums{ChannelSums<T>(view, request.device), view,
                             static_cast<Accum<T>>(op.eps)};
    kernel->run = [run = kernel->run, sums](const KernelContext& ctx) {
      run(ctx);
      sums.Run(ctx);
    };
    kernel->workspace_bytes = std::max(kernel->workspace_bytes, sums.workspace_bytes());
  });
  return conv;
}

// Stores the parameters' gradients and the constants of the pass over the elements.
template <typename A>
struct StoreOfSums {
  GradientOfChannel<A> gradient;
  Numbers sum, dot;
  GradientConstants<A> constants;
  Gradient dgamma, dbeta;

  __device__ void operator()(int64_t c) const {
    const A of_dy = sum.Get<A>(c), of_x = dot.Get<A>(c);
    dgamma.Store(c, of_x);
    dbeta.Store(c, of_dy);
    gradient.Store(c, of_dy, of_x, constants);
  }
};

template <typename T>
void GradientOfSums(const BatchNormGradOfSums& op, const Covered& view, const KernelContext& ctx) {
  using A = Accum<T>;
  using Grad = BatchNormGradOfSums;
  const GradientConstants<A> constants{static_cast<A*>(ctx.workspace), view.covered};
  ForEach(ctx, view.covered,
          StoreOfSums<A>{{InputNumbers(ctx, Grad::kMean),
                          InputNumbers(ctx, Grad::kVariance),
                          InputNumbers(ctx, Grad::kGamma),
                          {},
                          static_cast<A>(op.eps),
                          static_cast<A>(view.length())},
                         InputNumbers(ctx, Grad::kSum),
                         InputNumbers(ctx, Grad::kDot),
                         constants,
                         OutputGradient(ctx, Grad::kDgamma),
                         OutputGradient(ctx, Grad::kDbeta)});
  if (!ctx.has_output(Grad::kDx)) return;
  const T *x = ctx.input(Grad::kX).as<const T>(), *dz = ctx.input(Grad::kDz).as<const T>();
  T* dx = ctx.output(Grad::kDx).as<T>();
  if (HasRows<T>(view) && AreAligned<T>({x, dz, dx})) {
    constexpr int kPack = kPackSize<T>;
    MapRows(ctx, view.outer, view.covered / kPack,
            GradientOfRows<T, kPack, Signs::kNone>{{x, dz, nullptr}, constants, dx});
  } else {
    ForEach(
        ctx, ctx.output(Grad::kDx).count(),
        GradientOfInput<T>{{x, dz, nullptr, {nullptr, view.covered}}, constants, view.inner, dx});
  }
}

KernelOrRefusal MakeGradientOfSums(const BatchNormGradOfSums& op, const KernelRequest& request) {
  const Covered view = ChannelsOf(request.inputs[0]);
  return VisitFloat(request.inputs[0].dtype, [&]<typename T>(TypeTag<T>) {
    return Kernel{"", [=](const KernelContext& ctx) { GradientOfSums<T>(op, view, ctx); },
                  GradientConstants<Accum<T>>::Bytes(view.covered)};
  });
}

// fuse-norm-gradients checks the types of the first kernel: those for which cuDNN has engines.
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ConvGradNorm, "conv-grad-norm", KernelRank::kGood,
                              MakeConvGradNorm, {.signatures = {{DType::kFloat16, DType::kFloat}}});
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ConvGradNorm, "conv-grad-norm-reference",
                              KernelRank::kReference, MakeConvGradNorm);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, BatchNormGradOfSums, "batch-norm-grad-of-sums",
                              KernelRank::kReference, MakeGradientOfSums);

}  // namespace

}  // namespace caffe::cuda
