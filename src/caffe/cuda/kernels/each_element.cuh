// Kernels of elementwise ops (ops/each_element.hpp), one thread per element.
#pragma once

#include <utility>

#include "caffe/cuda/numbers.cuh"
#include "caffe/ops/each_element.hpp"

namespace caffe::cuda {

// An operand of type T.
template <typename T>
struct DataOperand {
  const T* data;

  __device__ bool is_present() const { return data != nullptr; }
  __device__ Accum<T> operator[](int64_t i) const { return Wide(data[i]); }
};

// An operand of any type.
template <typename A>
struct StoredOperand {
  Numbers numbers;

  __device__ bool is_present() const { return numbers.is_present(); }
  __device__ A operator[](int64_t i) const { return numbers.Get<A>(i); }
};

template <typename Op, typename T, size_t kInput>
auto OperandOf(const KernelContext& ctx) {
  if constexpr (ops::IsData<Op>(kInput)) {
    return DataOperand<T>{ctx.has_input(kInput) ? ctx.input(kInput).as<const T>() : nullptr};
  } else {
    return StoredOperand<ops::ComputedIn<Op, T>>{InputNumbers(ctx, kInput)};
  }
}

template <typename A, typename Op, typename... In>
__global__ void __launch_bounds__(kBlockThreads)
    EachElementKernel(Op op, Gradient y, int64_t count, In... in) {
  for (int64_t i = GlobalThread(); i < count; i += GridThreads()) {
    y.Store(i, op.template Element<A>(i, in...));
  }
}

template <typename Op, typename T, size_t... kInput>
void EachElementOf(const Op& op, const KernelContext& ctx, std::index_sequence<kInput...>) {
  const int64_t count = ctx.output(0).count();
  Launch(ctx,
         EachElementKernel<ops::ComputedIn<Op, T>, Op, decltype(OperandOf<Op, T, kInput>(ctx))...>,
         BlocksFor(count), kBlockThreads, op, OutputGradient(ctx, 0), count,
         OperandOf<Op, T, kInput>(ctx)...);
}

template <typename Op>
void EachElement(const Op& op, const KernelContext& ctx) {
  constexpr auto kInputs = std::make_index_sequence<Op::kInputs>();
  if constexpr (ops::ReadsAsStored<Op>()) {
    EachElementOf<Op, double>(op, ctx, kInputs);
  } else {
    VisitFloat(ctx.input(0).dtype,
               [&]<typename T>(TypeTag<T>) { EachElementOf<Op, T>(op, ctx, kInputs); });
  }
}

}  // namespace caffe::cuda
