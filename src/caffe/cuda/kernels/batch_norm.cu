// Batch normalisation of any type and layout: sums over all elements of a channel, then one pass
// over the elements.
#include <cmath>

#include "caffe/cuda/map.cuh"
#include "caffe/cuda/numbers.cuh"
#include "caffe/cuda/random_on_device.cuh"
#include "caffe/cuda/reduce.cuh"
#include "caffe/ops/norm.hpp"

namespace caffe::cuda {
namespace {

Covered ChannelsOf(const TensorDesc& x) {
  if (x.shape.num_axes() == 1) return {1, 1, x.count()};
  return Covered(ops::CoveredView(x, {1, 1}));
}

// y = x * factor + shift with one pair per channel, plus a residual, then ReLU.
template <typename A>
struct Affine {
  A factor, shift;
};

// Sums of x and x^2 about the channel's first element, so that a large mean costs no digits.
template <typename T>
struct AddMoments {
  const T* x;
  int64_t inner;

  __device__ void operator()(int64_t c, int64_t i, Sums<2, Accum<T>>& sums) const {
    const Accum<T> deviation = Wide(x[i]) - Wide(x[c * inner]);
    sums.values[0] += deviation;
    sums.values[1] += deviation * deviation;
  }
};

template <typename T>
struct StoreMoments {
  const T* x;
  int64_t inner;
  Accum<T> count;
  Numbers mean, variance;

  __device__ void operator()(int64_t c, const Sums<2, Accum<T>>& sums) const {
    using A = Accum<T>;
    const A deviation = sums.values[0] / count;
    const A square = sums.values[1] / count - deviation * deviation;
    mean.Set(c, Wide(x[c * inner]) + deviation);
    variance.Set(c, square > A(0) ? square : A(0));
  }
};

// The pair of a channel from statistics; `statistics_factor` is BVLC's running one, where given.
template <typename A>
struct Normalisation {
  Numbers mean, variance, statistics_factor, gamma, beta;
  A eps;

  __device__ A InverseFactor() const {
    if (!statistics_factor.is_present()) return A(1);
    const A factor = statistics_factor.Get<A>(0);
    return factor == A(0) ? A(0) : A(1) / factor;
  }
  __device__ Affine<A> At(int64_t c) const {
    const A inverse = InverseFactor();
    const A factor = gamma.GetOr<A>(c, A(1)) / std::sqrt(variance.Get<A>(c) * inverse + eps);
    return {factor, beta.GetOr<A>(c, A(0)) - mean.GetOr<A>(c, A(0)) * inverse * factor};
  }
};

// Worked out once per channel: a division and a root, of numbers of any type.
template <typename A>
struct StoreAffine {
  Normalisation<A> normalisation;
  Affine<A>* channels;

  __device__ void operator()(int64_t c) const { channels[c] = normalisation.At(c); }
};

template <typename T, int N>
struct Normalise {
  using A = Accum<T>;
  const Affine<A>* affines;
  const T *x, *residual;  // the second may be null
  T* y;
  int64_t channels, inner;
  bool has_relu;

  __device__ void operator()(int64_t pack) const {
    const Pack<T, N> in = PackAt<T, N>(x, pack);
    Pack<T, N> added{}, out;
    if (residual != nullptr) added = PackAt<T, N>(residual, pack);
    const int64_t first = Remainder(Divide(pack * N, inner), channels);
    Affine<A> affine{};
#pragma unroll
    for (int k = 0; k < N; ++k) {
      if (k == 0 || inner == 1) affine = affines[first + k];
      A value = Wide(in.values[k]) * affine.factor + affine.shift;
      if (residual != nullptr) value += Wide(added.values[k]);
      if (has_relu) value = value > A(0) ? value : A(0) * value + A(0);  // NaN stays
      out.values[k] = T(value);
    }
    reinterpret_cast<Pack<T, N>*>(y)[pack] = out;
  }
};

// Calls run(N) with as many elements as a thread may take together: one row or neighbouring
// channels.
template <typename T, typename Fn>
void VisitPack(const Covered& view, std::initializer_list<const void*> pointers, const Fn& run) {
  constexpr int N = static_cast<int>(16 / sizeof(T));
  bool is_packed = (view.inner == 1 ? view.covered : view.inner) % N == 0;
  for (const void* pointer : pointers) {
    is_packed = is_packed && IsPackAligned<T, N>(static_cast<const T*>(pointer));
  }
  if (is_packed) {
    run(std::integral_constant<int, N>{});
  } else {
    run(std::integral_constant<int, 1>{});
  }
}

template <typename T>
size_t AffineBytes(const Covered& view) {
  return static_cast<size_t>(view.covered) * sizeof(Affine<Accum<T>>);
}

// The workspace begins with AffineBytes(); the epilogue is one of IsAddRelu().
template <typename T>
void NormaliseWith(const Normalisation<Accum<T>>& normalisation, const ops::Epilogue& epilogue,
                   const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const int residual = ops::AddedOperand(epilogue);
  const T* added = residual >= 0 ? ctx.input(residual).as<const T>() : nullptr;
  const Covered view = ChannelsOf(x);
  auto* const affines = static_cast<Affine<Accum<T>>*>(ctx.workspace);
  ForEach(ctx, view.covered, StoreAffine<Accum<T>>{normalisation, affines});
  VisitPack<T>(view, {x.data, y.data, added}, [&]<int N>(std::integral_constant<int, N>) {
    ForEach(ctx, y.count() / N,
            Normalise<T, N>{affines, x.as<const T>(), added, y.as<T>(), view.covered, view.inner,
                            ops::EndsInRelu(epilogue)});
  });
}

KernelOrRefusal MakeBatchNorm(const ops::BatchNorm& op, const KernelRequest& request) {
  const Covered view = ChannelsOf(request.inputs[0]);
  return VisitFloat(request.inputs[0].dtype, [&]<typename T>(TypeTag<T>) {
    using A = Accum<T>;
    return Kernel{
        "",
        [=](const KernelContext& ctx) {
          const T* x = ctx.input(0).as<const T>();
          const Numbers mean = OutputNumbers(ctx, 1), variance = OutputNumbers(ctx, 2);
          SumCovered<2, A>(
              ctx, view, static_cast<char*>(ctx.workspace) + AffineBytes<T>(view),
              AddMoments<T>{x, view.inner},
              StoreMoments<T>{x, view.inner, static_cast<A>(view.length()), mean, variance});
          NormaliseWith<T>({mean,
                            variance,
                            {},
                            InputNumbers(ctx, 1),
                            InputNumbers(ctx, 2),
                            static_cast<A>(op.eps)},
                           op.epilogue, ctx);
        },
        AffineBytes<T>(view) + SumWorkspace<2, A>(view)};
  });
}

KernelOrRefusal MakeBatchNormInference(const ops::BatchNormInference& op,
                                       const KernelRequest& request) {
  return VisitFloat(request.inputs[0].dtype, [&]<typename T>(TypeTag<T>) {
    return Kernel{"",
                  [op](const KernelContext& ctx) {
                    NormaliseWith<T>(
                        {InputNumbers(ctx, 1), InputNumbers(ctx, 2), InputNumbers(ctx, 3),
                         InputNumbers(ctx, 4), InputNumbers(ctx, 5), static_cast<Accum<T>>(op.eps)},
                        op.epilogue, ctx);
                  },
                  AffineBytes<T>(ChannelsOf(request.inputs[0]))};
  });
}

KernelOrRefusal MakeBatchNormInferenceGrad(const ops::BatchNormInferenceGrad& op,
                                           const KernelRequest& request) {
  return VisitFloat(request.inputs[0].dtype, [&]<typename T>(TypeTag<T>) {
    return Kernel{"",
                  [op](const KernelContext& ctx) {
                    NormaliseWith<T>({{},
                                      InputNumbers(ctx, 1),
                                      InputNumbers(ctx, 2),
                                      InputNumbers(ctx, 3),
                                      {},
                                      static_cast<Accum<T>>(op.eps)},
                                     {}, ctx);
                  },
                  AffineBytes<T>(ChannelsOf(request.inputs[0]))};
  });
}

// What the gradient's two passes read.
template <typename T>
struct GradientOperands {
  using A = Accum<T>;
  const T *x, *dy, *y;  // y is null without ReLU
  Numbers mean, variance;
  A eps;

  __device__ A Dy(int64_t i) const {
    return Wide(dy[i]) * (y != nullptr && !(Wide(y[i]) > A(0)) ? A(0) : A(1));
  }
  __device__ A InverseDeviation(int64_t c) const {
    return A(1) / std::sqrt(variance.Get<A>(c) + eps);
  }
};

// Sums of dy and of dy * (x - mean); that dy is the residual's gradient, where one is wanted.
template <typename T>
struct AddGradients {
  GradientOperands<T> operands;
  T* dresidual;

  __device__ void operator()(int64_t c, int64_t i, Sums<2, Accum<T>>& sums) const {
    using A = Accum<T>;
    const A dy = operands.Dy(i);
    if (dresidual != nullptr) dresidual[i] = T(dy);
    sums.values[0] += dy;
    sums.values[1] += dy * (Wide(operands.x[i]) - operands.mean.template Get<A>(c));
  }
};

// Keeps the sums for the second pass, dbeta and dgamma in full precision.
template <typename T>
struct StoreGradients {
  using A = Accum<T>;
  GradientOperands<T> operands;
  A* sums;
  int64_t channels;
  Gradient dgamma, dbeta;

  __device__ void operator()(int64_t c, const Sums<2, A>& total) const {
    const A dot = total.values[1] * operands.InverseDeviation(c);
    sums[c] = total.values[0];
    sums[channels + c] = dot;
    dgamma.Store(c, dot);
    dbeta.Store(c, total.values[0]);
  }
};

template <typename T>
struct GradientOfInput {
  using A = Accum<T>;
  GradientOperands<T> operands;
  Numbers gamma;
  const A* sums;
  int64_t channels, inner;
  A count;
  T* dx;

  __device__ void operator()(int64_t i) const {
    const int64_t c = Remainder(Divide(i, inner), channels);
    const A inverse = operands.InverseDeviation(c);
    const A normalised = (Wide(operands.x[i]) - operands.mean.template Get<A>(c)) * inverse;
    const A centre = (sums[c] + normalised * sums[channels + c]) / count;
    dx[i] = T(gamma.GetOr<A>(c, A(1)) * inverse * (operands.Dy(i) - centre));
  }
};

KernelOrRefusal MakeBatchNormGrad(const ops::BatchNormGrad& op, const KernelRequest& request) {
  using Grad = ops::BatchNormGrad;
  const Covered view = ChannelsOf(request.inputs[0]);
  return VisitFloat(request.inputs[0].dtype, [&]<typename T>(TypeTag<T>) {
    using A = Accum<T>;
    const size_t sums_bytes = static_cast<size_t>(2 * view.covered) * sizeof(A);
    return Kernel{
        "",
        [=](const KernelContext& ctx) {
          A* sums = static_cast<A*>(ctx.workspace);
          GradientOperands<T> operands{
              ctx.input(Grad::kX).as<const T>(),
              ctx.input(Grad::kDy).as<const T>(),
              ctx.has_input(Grad::kY) ? ctx.input(Grad::kY).as<const T>() : nullptr,
              InputNumbers(ctx, Grad::kMean),
              InputNumbers(ctx, Grad::kVariance),
              static_cast<A>(op.eps)};
          T* dresidual =
              ctx.has_output(Grad::kDresidual) ? ctx.output(Grad::kDresidual).as<T>() : nullptr;
          SumCovered<2, A>(
              ctx, view, sums + 2 * view.covered, AddGradients<T>{operands, dresidual},
              StoreGradients<T>{operands, sums, view.covered, OutputGradient(ctx, Grad::kDgamma),
                                OutputGradient(ctx, Grad::kDbeta)});
          if (!ctx.has_output(0)) return;
          if (dresidual != nullptr) operands.dy = dresidual, operands.y = nullptr;
          ForEach(
              ctx, ctx.output(0).count(),
              GradientOfInput<T>{operands, InputNumbers(ctx, Grad::kGamma), sums, view.covered,
                                 view.inner, static_cast<A>(view.length()), ctx.output(0).as<T>()});
        },
        sums_bytes + SumWorkspace<2, A>(view)};
  });
}

// Running statistics, whose first pass is told from the others on the device.
struct AverageStatistics {
  Numbers batch_mean, batch_variance, mean, variance, factor;
  double fraction, unbias;
  bool decaying_sums, copies_first;
  RandomOnDevice random;

  __device__ void operator()(int64_t c) const {
    double keep = fraction, take = 1;
    if (!decaying_sums) {
      keep = copies_first && random.is_first_pass() ? 0 : fraction;
      take = 1 - keep;
    }
    mean.Set(c, keep * mean.Get<double>(c) + take * batch_mean.Get<double>(c));
    variance.Set(c, keep * variance.Get<double>(c) + take * unbias * batch_variance.Get<double>(c));
    if (decaying_sums && c == 0) factor.Set(0, fraction * factor.Get<double>(0) + 1);
  }
};

void UpdateRunningStatistics(const ops::UpdateRunningStatistics& op, const KernelContext& ctx) {
  const double unbias =
      op.count > 1 ? static_cast<double>(op.count) / static_cast<double>(op.count - 1) : 1;
  ForEach(ctx, ctx.output(0).count(),
          AverageStatistics{InputNumbers(ctx, 0), InputNumbers(ctx, 1), OutputNumbers(ctx, 0),
                            OutputNumbers(ctx, 1), OutputNumbers(ctx, 2), op.fraction, unbias,
                            op.decaying_sums, op.copies_first, RandomOnDevice(ctx)});
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::BatchNorm, "batch-norm",
                              KernelRank::kReference, MakeBatchNorm, {.fuses = ops::IsAddRelu});
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::BatchNormGrad, "batch-norm-grad",
                              KernelRank::kReference, MakeBatchNormGrad);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::BatchNormInference, "batch-norm-inference",
                              KernelRank::kReference, MakeBatchNormInference,
                              {.fuses = ops::IsAddRelu});
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::BatchNormInferenceGrad,
                              "batch-norm-inference-grad", KernelRank::kReference,
                              MakeBatchNormInferenceGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::UpdateRunningStatistics, UpdateRunningStatistics);

}  // namespace
}  // namespace caffe::cuda
