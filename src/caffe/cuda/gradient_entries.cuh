// A gradient's epilogue (gradient_epilogue.hpp) as a kernel's parameter.
#pragma once

#include "caffe/cuda/gradient_epilogue.hpp"
#include "caffe/cuda/pack.cuh"

namespace caffe::cuda {

template <typename T>
class GradientEntries {
 public:
  using A = Accum<T>;

  GradientEntries(const KernelContext& ctx, const ops::Epilogue& epilogue) {
    for (const ops::Pointwise& entry : epilogue) {
      const T* operand = ctx.input(entry.operand).as<const T>();
      if (entry.kind == ops::Pointwise::Kind::kAdd) {
        added_[count_++] = operand;
      } else {
        y_ = operand;
        slope_ = static_cast<A>(entry.a);
      }
    }
  }

  // Applies the epilogue to `value`, the gradient of element i.
  __device__ A Apply(int64_t i, A value) const {
    for (int k = 0; k < count_; ++k) value += Wide(added_[k][i]);
    return y_ == nullptr ? value : Masked(Wide(y_[i]), value);
  }

  // N elements at once.
  template <int N>
  __device__ WidePack<T, N> ApplyPack(int64_t pack, WidePack<T, N> value) const {
#pragma unroll
    for (int k = 0; k < kMostAddedGradients; ++k) {
      if (k >= count_) break;
      const WidePack<T, N> added = Widen(Pack<T, N>(PackAt<T, N>(added_[k], pack)));
#pragma unroll
      for (int i = 0; i < N; ++i) value.values[i] += added.values[i];
    }
    if (y_ == nullptr) return value;
    const WidePack<T, N> y = Widen(Pack<T, N>(PackAt<T, N>(y_, pack)));
#pragma unroll
    for (int i = 0; i < N; ++i) value.values[i] = Masked(y.values[i], value.values[i]);
    return value;
  }

  template <int N>
  bool IsAligned() const {
    for (int k = 0; k < count_; ++k) {
      if (!IsPackAligned<T, N>(added_[k])) return false;
    }
    return IsPackAligned<T, N>(y_);
  }

 private:
  __device__ A Masked(A y, A value) const {
    return y > A(0) ? value : slope_ * value;
  }

  const T* added_[kMostAddedGradients] = {};
  int count_ = 0;
  const T* y_ = nullptr;  // null if there is no ReLU
  A slope_ = 0;
};

}  // namespace caffe::cuda
