// Shared by kernels of quantised values: numbers of three types, and the epilogue of the sums of a
// product.
#pragma once

#include <limits>

#include "caffe/cuda/pack.cuh"
#include "caffe/ops/int8.hpp"

namespace caffe::cuda {

using ops::VisitNumber;

// 8-bit numbers or floats, read as values. The type is the same for all threads.
struct ScaledNumbers {
  const void* data = nullptr;
  DType dtype = DType::kFloat;
  float scale = 1;

  ScaledNumbers() = default;
  explicit ScaledNumbers(const TensorView& x, float coefficient = 1)
      : data(x.data), dtype(x.dtype), scale(coefficient * ops::ScaleOf(x)) {}

  // Adds the values of a pack; does nothing if there is no data.
  template <int N>
  __device__ void AddTo(int64_t pack, float (&sums)[N]) const {
    if (data == nullptr) return;
    if (dtype == DType::kUInt8) return Add<uint8_t>(pack, sums);
    if (dtype == DType::kInt8) return Add<int8_t>(pack, sums);
    Add<float>(pack, sums);
  }

 private:
  template <typename T, int N>
  __device__ void Add(int64_t pack, float (&sums)[N]) const {
    const Pack<T, N> numbers = PackAt<T, N>(static_cast<const T*>(data), pack);
#pragma unroll
    for (int k = 0; k < N; ++k) sums[k] += scale * static_cast<float>(numbers.values[k]);
  }
};

// Stores the values in units of 1 / per_unit, rounded.
template <typename T, int N>
__device__ inline void StoreNumbers(const float (&values)[N], float per_unit, T* y, int64_t pack) {
  Pack<T, N> numbers;
#pragma unroll
  for (int k = 0; k < N; ++k) numbers.values[k] = ops::ToNumber<T>(values[k] * per_unit);
  reinterpret_cast<Pack<T, N>*>(y)[pack] = numbers;
}

// A ReLU, then clipping, without branches.
struct Limits {
  float slope = 1, lowest = -kInfinity, most = kInfinity;

  // `epilogue` must satisfy IsAddReluClip().
  explicit Limits(const ops::Epilogue& epilogue) {
    for (const ops::Pointwise& entry : epilogue) {
      if (entry.kind == ops::Pointwise::Kind::kRelu) slope = entry.a;
      if (entry.kind == ops::Pointwise::Kind::kClip) lowest = entry.a, most = entry.b;
    }
  }
  __device__ float Apply(float value) const {
    return std::min(std::max(value > 0 ? value : slope * value, lowest), most);
  }

 private:
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();
};

// Converts the sums of a product to its result: y = epilogue(sum * factor of the channel + bias).
struct Finish {
  const float* factors;  // one per channel
  const float* bias;     // null if there is none
  ScaledNumbers added;
  Limits limits;
  float per_unit;  // 1 / the scale of y

  Finish(const KernelContext& ctx, const ops::Epilogue& epilogue, const float* factors)
      : factors(factors),
        bias(ctx.has_input(2) ? ctx.input(2).as<const float>() : nullptr),
        limits(epilogue),
        per_unit(1 / ops::ScaleOf(ctx.output(0))) {
    const int operand = ops::AddedOperand(epilogue);
    if (operand >= 0) added = ScaledNumbers(ctx.input(operand));
  }

  // Stores N neighbouring channels from `channel` on, which are a pack of y.
  template <typename T, int N>
  __device__ void Store(int64_t channel, int64_t pack, const float (&sums)[N], T* y) const {
    const Pack<float, N> factor = PackAt<float, N>(factors, channel / N);
    float values[N];
#pragma unroll
    for (int k = 0; k < N; ++k) values[k] = sums[k] * factor.values[k];
    if (bias != nullptr) {
      const Pack<float, N> shift = PackAt<float, N>(bias, channel / N);
#pragma unroll
      for (int k = 0; k < N; ++k) values[k] += shift.values[k];
    }
    added.AddTo(pack, values);
#pragma unroll
    for (int k = 0; k < N; ++k) values[k] = limits.Apply(values[k]);
    StoreNumbers(values, per_unit, y, pack);
  }
};

// Calls run(std::integral_constant<int, N>{}) with the number of neighbouring channels that a
// thread processes at a time.
template <typename Fn>
void VisitChannelPacks(int64_t channels, const Fn& run) {
  if (channels % 16 == 0) return run(std::integral_constant<int, 16>{});
  if (channels % 4 == 0) return run(std::integral_constant<int, 4>{});
  run(std::integral_constant<int, 1>{});
}

}  // namespace caffe::cuda
