// Batch normalisation of any type and layout: sums over all elements of a channel, then one pass
// over the elements. For channels-last tensors both go by rows (batch_norm_rows.cuh). The result,
// or the gradient at it, is at a place: Apart or a ChannelPart.
#pragma once

#include <cmath>
#include <type_traits>

#include "caffe/cuda/kernels/batch_norm_elements.cuh"
#include "caffe/cuda/kernels/channel_sums.cuh"
#include "caffe/cuda/kernels/running_statistics.cuh"
#include "caffe/ops/fused.hpp"
#include "caffe/ops/norm.hpp"

namespace caffe::cuda {

template <typename Fn>
void VisitBool(bool value, const Fn& fn) {
  value ? fn(std::true_type{}) : fn(std::false_type{});
}

// Stores a channel's statistics, the updated running statistics, and the second pass's constants.
template <typename T>
struct StoreMoments {
  using A = Accum<T>;
  const T* x;
  int64_t inner;
  A count;
  Normalisation<A> normalisation;
  AffineConstants<A> constants;
  RunningStatistics running;

  __device__ void operator()(int64_t c, const Sums<2, A>& sums) const {
    const A deviation = sums.values[0] / count;
    const A square = sums.values[1] / count - deviation * deviation;
    normalisation.mean.Set(c, Wide(x[c * inner]) + deviation);
    normalisation.variance.Set(c, square > A(0) ? square : A(0));
    normalisation.Store(c, constants);
    running.Update(c);
  }
};

// VisitBool for what is false of parts.
template <typename Place, typename Fn>
void VisitBoolIfApart(bool value, const Fn& fn) {
  if constexpr (Place::kIsPart) {
    fn(std::false_type{});
  } else {
    VisitBool(value, fn);
  }
}

// Normalises N neighbours of one channel.
template <typename T, int N, typename Packs>
struct Normalise {
  using A = Accum<T>;
  AffineConstants<A> constants;
  const T *x, *residual;  // residual may be null
  T* y;
  int64_t inner;
  bool has_relu;
  Packs packs_of_y;

  __device__ void operator()(int64_t pack) const {
    const int64_t c = Remainder(Divide(pack * N, inner), constants.channels);
    const A factor = constants[kFactor][c], shift = constants[kShift][c];
    WidePack<T, N> value = Widen(Pack<T, N>(PackAt<T, N>(x, pack))), added{};
    if (residual != nullptr) added = Widen(Pack<T, N>(PackAt<T, N>(residual, pack)));
#pragma unroll
    for (int k = 0; k < N; ++k) {
      A& v = value.values[k];
      v = v * factor + shift;
      if (residual != nullptr) v += added.values[k];
      if (has_relu) v = v > A(0) ? v : A(0) * v + A(0);  // NaN stays NaN
    }
    StorePack(y, packs_of_y.At(pack), value);
  }
};

// Calls run(N) with the number of neighbours of one channel that a thread processes together.
template <typename T, typename Fn>
void VisitPack(const Covered& view, bool is_aligned, const Fn& run) {
  if (is_aligned && view.inner % kPackSize<T> == 0) {
    run(std::integral_constant<int, kPackSize<T>>{});
  } else {
    run(std::integral_constant<int, 1>{});
  }
}

// Returns the tensor that the epilogue adds, or null; the epilogue must satisfy IsAddRelu().
template <typename T>
const T* AddedTensor(const ops::Epilogue& epilogue, const KernelContext& ctx) {
  const int operand = ops::AddedOperand(epilogue);
  return operand >= 0 ? ctx.input(operand).as<const T>() : nullptr;
}

// The second pass for channels-last tensors in whole packs; false for any other.
template <typename T, typename Source, typename Place>
bool NormaliseByRows(const Source& source, const ops::Epilogue& epilogue, const KernelContext& ctx,
                     const Place& place) {
  constexpr int kPack = kPackSize<T>;
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const T* added = AddedTensor<T>(epilogue, ctx);
  const Covered view = ChannelsOf(x);
  if (!HasRows<T>(view) || !place.template HasPacks<kPack>(x.count()) ||
      !AreAligned<T>({x.data, y.data, added})) {
    return false;
  }
  const auto packs = place.template InPacks<kPack>();
  VisitBoolIfApart<Place>(added != nullptr, [&]<bool kAdds>(std::bool_constant<kAdds>) {
    VisitBool(ops::EndsInRelu(epilogue), [&]<bool kHasRelu>(std::bool_constant<kHasRelu>) {
      MapRows(ctx, view.outer, view.covered / kPack,
              NormaliseRows<T, kPack, kAdds, kHasRelu, Source, typename Place::Packs>{
                  source, x.as<const T>(), added, y.as<T>(), packs});
    });
  });
  return true;
}

// The second pass.
template <typename T, typename Place>
void NormaliseWith(const AffineConstants<Accum<T>>& constants, const ops::Epilogue& epilogue,
                   const KernelContext& ctx, const Place& place) {
  if (NormaliseByRows<T>(StoredAffine<Accum<T>>{constants}, epilogue, ctx, place)) return;
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const T* added = AddedTensor<T>(epilogue, ctx);
  const Covered view = ChannelsOf(x);
  const bool has_packs =
      place.template HasPacks<kPackSize<T>>(x.count()) && AreAligned<T>({x.data, y.data, added});
  VisitPack<T>(view, has_packs, [&]<int N>(std::integral_constant<int, N>) {
    const auto run = [&](const auto& packs) {
      ForEach(ctx, x.count() / N,
              Normalise<T, N, std::decay_t<decltype(packs)>>{constants, x.as<const T>(), added,
                                                             y.as<T>(), view.inner,
                                                             ops::EndsInRelu(epilogue), packs});
    };
    if constexpr (N == 1) {
      run(place);
    } else {
      run(place.template InPacks<N>());
    }
  });
}

template <typename Place>
Kernel MakeBatchNormAt(const Place& place, const ops::BatchNorm& op, const KernelRequest& request) {
  const Covered view = ChannelsOf(request.inputs[0]);
  return VisitFloat(request.inputs[0].dtype, [&]<typename T>(TypeTag<T>) {
    using A = Accum<T>;
    const ChannelSums<T> sums(view, request.device);
    const size_t constants_bytes = AffineConstants<A>::Bytes(view.covered);
    return Kernel{
        "",
        [=](const KernelContext& ctx) {
          const T* x = ctx.input(0).as<const T>();
          const AffineConstants<A> constants{static_cast<A*>(ctx.workspace), view.covered};
          void* const partial = static_cast<char*>(ctx.workspace) + constants_bytes;
          const StoreMoments<T> store{x,
                                      view.inner,
                                      static_cast<A>(view.length()),
                                      {OutputNumbers(ctx, 1),
                                       OutputNumbers(ctx, 2),
                                       {},
                                       InputNumbers(ctx, 1),
                                       InputNumbers(ctx, 2),
                                       static_cast<A>(op.eps)},
                                      constants,
                                      RunningStatistics::Of(op, ctx)};
          if (HasRows<T>(view) && AreAligned<T>({x})) {
            sums.ByRows(ctx, partial, MomentsOfRows<T, kPackSize<T>>{x}, store);
          } else {
            sums.ByElements(ctx, partial, AddMoments<T>{x, view.inner}, store);
          }
          NormaliseWith<T>(constants, op.epilogue, ctx, place);
        },
        constants_bytes + sums.workspace_bytes()};
  });
}

// Normalises by given statistics, which `normalisation(ctx)` returns.
template <typename T, typename Place, typename Fn>
Kernel NormaliseByGiven(const Place& place, const ops::Epilogue& epilogue, const OperandDesc& x,
                        const Fn& normalisation) {
  using A = Accum<T>;
  const int64_t channels = ChannelsOf(x).covered;
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  const Normalisation<A> given = normalisation(ctx);
                  if (PlainNormalisation<A>::Fits(given) &&
                      NormaliseByRows<T>(GivenAffine<A>{PlainNormalisation<A>(given)}, epilogue,
                                         ctx, place)) {
                    return;
                  }
                  const AffineConstants<A> constants{static_cast<A*>(ctx.workspace), channels};
                  ForEach(ctx, channels, StoreAffine<A>{given, constants});
                  NormaliseWith<T>(constants, epilogue, ctx, place);
                },
                AffineConstants<A>::Bytes(channels)};
}

template <typename Place>
Kernel MakeBatchNormInferenceAt(const Place& place, const ops::BatchNormInference& op,
                                const KernelRequest& request) {
  return VisitFloat(request.inputs[0].dtype, [&]<typename T>(TypeTag<T>) {
    using A = Accum<T>;
    return NormaliseByGiven<T>(place, op.epilogue, request.inputs[0],
                               [eps = static_cast<A>(op.eps)](const KernelContext& ctx) {
                                 return Normalisation<A>{InputNumbers(ctx, 1), InputNumbers(ctx, 2),
                                                         InputNumbers(ctx, 3), InputNumbers(ctx, 4),
                                                         InputNumbers(ctx, 5), eps};
                               });
  });
}

// Stores dbeta, dgamma and the second pass's constants.
template <typename T>
struct StoreGradients {
  using A = Accum<T>;
  GradientOfChannel<A> gradient;
  GradientConstants<A> constants;
  Gradient dgamma, dbeta;

  __device__ void operator()(int64_t c, const Sums<2, A>& total) const {
    const A dot = total.values[1] * gradient.InverseDeviation(c);
    dgamma.Store(c, dot);
    dbeta.Store(c, total.values[0]);
    gradient.Store(c, total.values[0], dot, constants);
  }
};

// Indices of a gradient's operands; -1: there is no such operand.
struct GradientIndices {
  int x, mean, variance, dy, gamma, y, beta, dresidual;
  bool has_signs_of_x = false;  // a ReLU follows whose result is computed again

  // In a region whose last member is a gradient that stores no dresidual, perhaps after the
  // BatchNormInference that computes y.
  static GradientIndices InRegion(const ops::Fused& region) {
    using Grad = ops::BatchNormGrad;
    const size_t grad = region.members.size() - 1;
    const auto input = [&](int operand) { return region.InputOf(grad, operand); };
    GradientIndices indices{.x = input(Grad::kX),
                            .mean = input(Grad::kMean),
                            .variance = input(Grad::kVariance),
                            .dy = input(Grad::kDy),
                            .gamma = input(Grad::kGamma),
                            .y = input(Grad::kY),
                            .beta = -1,
                            .dresidual = -1};
    if (grad > 0 && region.members[grad - 1].op.As<ops::BatchNormInference>() != nullptr) {
      indices.beta = region.InputOf(grad - 1, ops::BatchNormInference::kBeta);
      indices.has_signs_of_x = true;
    }
    return indices;
  }
};

// The operands of one run of BatchNormGrad, or of the region that computes the ReLU's signs itself.
template <typename T, typename Place>
struct GradientRun {
  using Grad = ops::BatchNormGrad;
  using A = Accum<T>;
  static constexpr int kPack = kPackSize<T>;
  const KernelContext& ctx;
  Covered view;
  Signs signs;
  Normalisation<A> normalisation;
  ElementOperands<T, Place> operands;
  T *dresidual, *dx;
  GradientConstants<A> constants;
  bool by_rows;

  GradientRun(const KernelContext& ctx, const Covered& view, const GradientIndices& of,
              const Place& place, double eps)
      : ctx(ctx),
        view(view),
        signs(of.has_signs_of_x     ? Signs::kOfX
              : ctx.has_input(of.y) ? Signs::kOfY
                                    : Signs::kNone),
        normalisation{InputNumbers(ctx, of.mean),
                      InputNumbers(ctx, of.variance),
                      {},
                      of.gamma < 0 ? Numbers() : InputNumbers(ctx, of.gamma),
                      of.beta < 0 ? Numbers() : InputNumbers(ctx, of.beta),
                      static_cast<A>(eps)},
        operands{ctx.input(of.x).as<const T>(),
                 ctx.input(of.dy).as<const T>(),
                 signs == Signs::kOfY ? ctx.input(of.y).as<const T>() : nullptr,
                 {nullptr, view.covered},
                 place},
        dresidual(of.dresidual >= 0 && ctx.has_output(of.dresidual)
                      ? ctx.output(of.dresidual).as<T>()
                      : nullptr),
        dx(ctx.has_output(Grad::kDx) ? ctx.output(Grad::kDx).as<T>() : nullptr),
        constants{static_cast<A*>(ctx.workspace), view.covered},
        by_rows(HasRows<T>(view) && HasPlainSigns() && HasPacks() &&
                AreAligned<T>({operands.x, operands.dy, operands.y, dresidual, dx})) {}

  static size_t ConstantsBytes(const Covered& view) {
    return GradientConstants<A>::Bytes(view.covered) + AffineConstants<A>::Bytes(view.covered);
  }

  StoreGradients<T> Finish() const {
    return {{normalisation.mean, normalisation.variance, normalisation.gamma, normalisation.beta,
             normalisation.eps, static_cast<A>(view.length())},
            constants,
            OutputGradient(ctx, Grad::kDgamma),
            OutputGradient(ctx, Grad::kDbeta)};
  }

  // Calls fn(std::integral_constant<Signs, ...>).
  template <typename Fn>
  void VisitSigns(const Fn& fn) const {
    switch (signs) {
      case Signs::kNone:
        return fn(std::integral_constant<Signs, Signs::kNone>{});
      case Signs::kOfY:
        return fn(std::integral_constant<Signs, Signs::kOfY>{});
      case Signs::kOfX:
        return fn(std::integral_constant<Signs, Signs::kOfX>{});
    }
  }

  void Sum(const ChannelSums<T>& sums) {
    void* const partial = static_cast<char*>(ctx.workspace) + ConstantsBytes(view);
    if (!by_rows) {
      StoreSigns();
      sums.ByElements(ctx, partial, AddGradients<T, Place>{operands, normalisation.mean, dresidual},
                      Finish());
      return;
    }
    VisitSigns([&]<Signs kSigns>(std::integral_constant<Signs, kSigns>) {
      VisitBoolIfApart<Place>(dresidual != nullptr, [&]<bool kStores>(std::bool_constant<kStores>) {
        sums.ByRows(ctx, partial,
                    GradientSumsOfRows<T, kPack, kSigns, kStores, typename Place::Packs>{
                        PackOperands<kSigns>(), normalisation.mean,
                        PlainNormalisation<A>(normalisation), dresidual},
                    Finish());
      });
    });
  }

  void MakeDx() {
    if (dx == nullptr) return;
    // dresidual holds dy with the ReLU's gradient already applied, so use it as dy.
    if (dresidual != nullptr) operands.dy = dresidual, operands.y = nullptr, signs = Signs::kNone;
    if (!by_rows) {
      ForEach(ctx, ctx.output(Grad::kDx).count(),
              GradientOfInput<T, Place>{operands, constants, view.inner, dx});
      return;
    }
    VisitSigns([&]<Signs kSigns>(std::integral_constant<Signs, kSigns>) {
      MapRows(ctx, view.outer, view.covered / kPack,
              GradientOfRows<T, kPack, kSigns, typename Place::Packs>{PackOperands<kSigns>(),
                                                                      constants, dx});
    });
  }

 private:
  bool HasPacks() const {
    return operands.place_of_dy.template HasPacks<kPack>(view.length() * view.covered);
  }
  template <Signs kSigns>
  GradientOperands<T, kPack, kSigns, typename Place::Packs> PackOperands() const {
    return {operands.x, operands.dy, operands.y, operands.place_of_dy.template InPacks<kPack>()};
  }
  bool HasPlainSigns() const {
    return signs != Signs::kOfX || PlainNormalisation<A>::Fits(normalisation);
  }
  // Only for the elementwise path; rows compute these constants themselves.
  void StoreSigns() {
    if (signs != Signs::kOfX) return;
    operands.signs.values = constants.values + kGradientConstants * view.covered;
    ForEach(ctx, view.covered, StoreAffine<A>{normalisation, operands.signs});
  }
};

template <typename Place>
Kernel MakeGradientAt(const Place& place, const KernelRequest& request, const GradientIndices& of,
                      double eps) {
  const OperandDesc& x = request.inputs[static_cast<size_t>(of.x)];
  const Covered view = ChannelsOf(x);
  return VisitFloat(x.dtype, [&]<typename T>(TypeTag<T>) {
    const ChannelSums<T> sums(view, request.device);
    return Kernel{"",
                  [=](const KernelContext& ctx) {
                    GradientRun<T, Place> run(ctx, view, of, place, eps);
                    run.Sum(sums);
                    run.MakeDx();
                  },
                  GradientRun<T, Place>::ConstantsBytes(view) + sums.workspace_bytes()};
  });
}

}  // namespace caffe::cuda
