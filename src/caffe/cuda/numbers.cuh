// Operands of another type than the kernel's: per-channel numbers, labels, scalars, statistics, and
// all operands of losses.
#pragma once

#include "caffe/cuda/launch.cuh"

namespace caffe::cuda {

// The type is checked on each access; all threads take the same branch.
struct Numbers {
  void* data = nullptr;
  DType dtype = DType::kFloat;

  __device__ bool is_present() const { return data != nullptr; }

  template <typename A>
  __device__ A Get(int64_t i) const {
    switch (dtype) {
      case DType::kDouble:
        return static_cast<A>(static_cast<const double*>(data)[i]);
      case DType::kFloat16:
        return static_cast<A>(static_cast<float>(static_cast<const float16*>(data)[i]));
      case DType::kBFloat16:
        return static_cast<A>(static_cast<float>(static_cast<const bfloat16*>(data)[i]));
      default:
        return static_cast<A>(static_cast<const float*>(data)[i]);
    }
  }
  template <typename A>
  __device__ A GetOr(int64_t i, A fallback) const {
    return data == nullptr ? fallback : Get<A>(i);
  }

  template <typename A>
  __device__ void Set(int64_t i, A value) const {
    switch (dtype) {
      case DType::kDouble:
        static_cast<double*>(data)[i] = static_cast<double>(value);
        break;
      case DType::kFloat16:
        static_cast<float16*>(data)[i] = float16(value);
        break;
      case DType::kBFloat16:
        static_cast<bfloat16*>(data)[i] = bfloat16(value);
        break;
      default:
        static_cast<float*>(data)[i] = static_cast<float>(value);
    }
  }
};

// Returns the operand, or empty Numbers if it is not present.
inline Numbers InputNumbers(const KernelContext& ctx, int input) {
  if (!ctx.has_input(input)) return {};
  return {ctx.input(input).data, ctx.input(input).dtype};
}
inline Numbers OutputNumbers(const KernelContext& ctx, int output) {
  if (!ctx.has_output(output)) return {};
  return {ctx.output(output).data, ctx.output(output).dtype};
}

// A result that is added to if the step accumulates; storing does nothing if it is not present.
struct Gradient {
  Numbers to;
  bool adds = false;

  template <typename A>
  __device__ void Store(int64_t i, A value) const {
    if (!to.is_present()) return;
    to.Set(i, adds ? to.Get<A>(i) + value : value);
  }
};

inline Gradient OutputGradient(const KernelContext& ctx, int output) {
  return {OutputNumbers(ctx, output), ctx.accumulates(output)};
}

}  // namespace caffe::cuda
