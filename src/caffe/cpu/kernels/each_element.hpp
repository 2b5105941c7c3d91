// Kernels of ops that compute each element independently (ops/each_element.hpp).
#pragma once

#include <utility>

#include "caffe/cpu/kernels/element.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/each_element.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {

// An operand of the op's data type T.
template <typename T>
struct DataOperand {
  const T* data;

  bool is_present() const { return data != nullptr; }
  Accum<T> operator[](int64_t i) const { return static_cast<Accum<T>>(data[i]); }
};

// An operand of any type.
template <typename A>
struct StoredOperand {
  const TensorView* view;

  bool is_present() const { return view != nullptr; }
  A operator[](int64_t i) const { return static_cast<A>(ElementOf(*view, i)); }
};

template <typename Op, typename T, size_t kInput>
auto OperandOf(const KernelContext& ctx) {
  const TensorView* view = ctx.has_input(kInput) ? &ctx.input(kInput) : nullptr;
  if constexpr (ops::IsData<Op>(kInput)) {
    return DataOperand<T>{view == nullptr ? nullptr : view->as<const T>()};
  } else {
    return StoredOperand<ops::ComputedIn<Op, T>>{view};
  }
}

template <typename Op, typename T, size_t... kInput>
void EachElementOf(const Op& op, const KernelContext& ctx, std::index_sequence<kInput...>) {
  constexpr int64_t kGrain = 256;  // an element costs more than a pointwise one
  const TensorView& y = ctx.output(0);
  const bool adds = ctx.accumulates(0);
  ParallelFor(y.count(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double value =
          op.template Element<ops::ComputedIn<Op, T>>(i, OperandOf<Op, T, kInput>(ctx)...);
      SetElement(y, i, adds ? ElementOf(y, i) + value : value);
    }
  });
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

}  // namespace caffe::cpu
