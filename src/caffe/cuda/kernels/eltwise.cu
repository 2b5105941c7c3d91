#include <type_traits>
#include <utility>

#include "caffe/cuda/entries.hpp"
#include "caffe/cuda/map.cuh"
#include "caffe/cuda/numbers.cuh"
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/pointwise.hpp"

namespace caffe::cuda {
namespace {

// y = sum of c_i * x_i, then ReLU, for K operands that are separate kernel parameters.
template <typename A, int K, bool kHasRelu>
struct SumOfFew {
  A coefficients[K];
  ops::Relu relu;

  template <typename... X>
  __device__ A operator()(X... x) const {
    const A values[K] = {x...};
    A sum = coefficients[0] * values[0];
#pragma unroll
    for (int k = 1; k < K; ++k) sum += coefficients[k] * values[k];
    return kHasRelu ? relu.Apply(sum) : sum;
  }
};
inline constexpr size_t kMostOfFew = 4;

// For more operands, up to the number that fits into a launch's parameters.
inline constexpr int kMaxOperands = 64;

template <typename T>
struct Operands {
  const T* x[kMaxOperands];
  int count;

  explicit Operands(std::span<const TensorView> views) : count(static_cast<int>(views.size())) {
    Require(count <= kMaxOperands, "an Eltwise layer with ", count,
            " bottoms; the CUDA kernels take at most ", kMaxOperands,
            ": split it into several layers");
    for (int k = 0; k < count; ++k) x[k] = views[k].as<const T>();
  }
  __device__ Accum<T> At(int k, int64_t i) const { return Wide(x[k][i]); }
};

template <typename T>
struct SumAll {
  using A = Accum<T>;
  Operands<T> x;
  A coefficients[kMaxOperands];
  Entries entries;
  T* y;

  __device__ void operator()(int64_t i) const {
    A sum = 0;
    for (int k = 0; k < x.count; ++k) sum += coefficients[k] * x.At(k, i);
    y[i] = T(entries.Apply(sum));
  }
};

// coefficient(k) returns that of operand k.
template <typename T, typename Fn, size_t... k>
void AddFew(const ops::EltwiseSum& op, const KernelContext& ctx, const Fn& coefficient,
            std::index_sequence<k...>) {
  const auto add = [&]<bool kHasRelu>(std::bool_constant<kHasRelu>, float slope) {
    const SumOfFew<Accum<T>, sizeof...(k), kHasRelu> sum{{coefficient(k)...}, ops::Relu(slope)};
    const TensorView& y = ctx.output(0);
    Map(ctx, sum, y.count(), y.as<T>(), ctx.inputs[k].template as<const T>()...);
  };
  if (op.epilogue.empty()) {
    add(std::false_type{}, 0);
  } else {
    add(std::true_type{}, op.epilogue[0].a);
  }
}

template <typename T, typename Fn>
void AddAll(const ops::EltwiseSum& op, const KernelContext& ctx, const Fn& coefficient) {
  const TensorView& y = ctx.output(0);
  SumAll<T> body{Operands<T>(ctx.inputs), {}, Entries(op.epilogue), y.as<T>()};
  for (int k = 0; k < body.x.count; ++k) body.coefficients[k] = coefficient(static_cast<size_t>(k));
  ForEach(ctx, y.count(), body);
}

// Calls run(std::make_index_sequence<count>()) for 2 <= count <= kMostOfFew; false otherwise.
template <size_t kCount = 2, typename Fn>
bool VisitFew(size_t count, const Fn& run) {
  if constexpr (kCount > kMostOfFew) {
    return false;
  } else {
    if (count != kCount) return VisitFew<kCount + 1>(count, run);
    run(std::make_index_sequence<kCount>());
    return true;
  }
}

void EltwiseSum(const ops::EltwiseSum& op, const KernelContext& ctx) {
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    using A = Accum<T>;
    const auto coefficient = [&](size_t k) {
      return op.coefficients.empty() ? A(1) : A(op.coefficients[k]);
    };
    const bool is_done =
        IsReluAlone(op.epilogue) && VisitFew(ctx.inputs.size(), [&](auto operands) {
          AddFew<T>(op, ctx, coefficient, operands);
        });
    if (!is_done) AddAll<T>(op, ctx, coefficient);
  });
}

template <typename T>
struct ProductOfAll {
  Operands<T> x;
  T* y;

  __device__ void operator()(int64_t i) const {
    Accum<T> product = 1;
    for (int k = 0; k < x.count; ++k) product *= x.At(k, i);
    y[i] = T(product);
  }
};

void EltwiseProd(const ops::EltwiseProd&, const KernelContext& ctx) {
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(ctx, ctx.output(0).count(),
            ProductOfAll<T>{Operands<T>(ctx.inputs), ctx.output(0).as<T>()});
  });
}

// Operands 0 and 1 are y and dy.
template <typename T>
struct ProductGradient {
  static constexpr int kFirst = 2;
  Operands<T> x;
  int index;
  bool stable;
  T* dx;

  __device__ void operator()(int64_t i) const {
    Accum<T> others = 1;
    if (stable) {
      for (int k = kFirst; k < x.count; ++k) {
        if (k - kFirst != index) others *= x.At(k, i);
      }
    } else {
      others = x.At(0, i) / x.At(kFirst + index, i);
    }
    dx[i] = T(others * x.At(1, i));
  }
};

void EltwiseProdGrad(const ops::EltwiseProdGrad& op, const KernelContext& ctx) {
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(
        ctx, ctx.output(0).count(),
        ProductGradient<T>{Operands<T>(ctx.inputs), op.index, op.stable, ctx.output(0).as<T>()});
  });
}

template <typename T>
struct MaximumOfAll {
  Operands<T> x;
  T* y;
  Numbers mask;

  __device__ void operator()(int64_t i) const {
    const Accum<T> first = x.At(0, i);
    Accum<T> best = x.At(1, i);
    int winner = 1;
    if (first > best) best = first, winner = 0;
    for (int k = 2; k < x.count; ++k) {
      const Accum<T> value = x.At(k, i);
      if (value > best) best = value, winner = k;
    }
    y[i] = T(best);
    if (mask.is_present()) mask.Set(i, static_cast<float>(winner));
  }
};

void EltwiseMax(const ops::EltwiseMax&, const KernelContext& ctx) {
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(ctx, ctx.output(0).count(),
            MaximumOfAll<T>{Operands<T>(ctx.inputs), ctx.output(0).as<T>(), OutputNumbers(ctx, 1)});
  });
}

template <typename T>
struct MaximumGradient {
  Numbers mask;
  const T* dy;
  float index;
  T* dx;

  __device__ void operator()(int64_t i) const {
    dx[i] = mask.Get<float>(i) == index ? dy[i] : T(0.0f);
  }
};

void EltwiseMaxGrad(const ops::EltwiseMaxGrad& op, const KernelContext& ctx) {
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(ctx, ctx.output(0).count(),
            MaximumGradient<T>{InputNumbers(ctx, 0), ctx.input(1).as<const T>(),
                               static_cast<float>(op.index), ctx.output(0).as<T>()});
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::EltwiseSum, EltwiseSum, EntriesFit);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::EltwiseProd, EltwiseProd);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::EltwiseProdGrad, EltwiseProdGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::EltwiseMax, EltwiseMax);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::EltwiseMaxGrad, EltwiseMaxGrad);

}  // namespace
}  // namespace caffe::cuda
