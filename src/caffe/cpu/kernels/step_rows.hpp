// Parts that the kernels of recurrent layers share. A thread runs all steps for some items.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "caffe/cpu/kernels/row_product.hpp"
#include "caffe/cpu/workspace_layout.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/ops/recurrence.hpp"

namespace caffe::cpu {

// sums[d] += x[d]
template <typename T, typename A>
CAFFE_CPU_CLONES void AddRow(const T* x, int64_t count, A* sums) {
  for (int64_t d = 0; d < count; ++d) sums[d] += static_cast<A>(x[d]);
}

// sums[d] = x[d] + y[d]; y and sums may be the same.
template <typename T, typename A>
CAFFE_CPU_CLONES void SumOfRows(const T* x, const A* y, int64_t count, A* sums) {
  for (int64_t d = 0; d < count; ++d) sums[d] = static_cast<A>(x[d]) + y[d];
}

template <typename A>
CAFFE_CPU_CLONES void ScaleBy(A factor, int64_t count, A* x) {
  for (int64_t d = 0; d < count; ++d) x[d] *= factor;
}

// Rounds from[d] to T, multiplies it by the factor and rounds again: as factors of a product and,
// unless it is null, as a result.
template <typename From, typename A, typename T, typename X>
CAFFE_CPU_CLONES void ScaleRow(const From* from, int64_t count, A factor, X* factors, T* result) {
  for (int64_t d = 0; d < count; ++d) {
    const A before = static_cast<A>(T(static_cast<A>(from[d])));
    factors[d] = X(static_cast<A>(T(factor * before)));
  }
  if (result != nullptr) ConvertRow(factors, count, result);
}

// The operands of a run by step and item. T is the type of the data, X that of the factors of
// products (row_product.hpp). Steps are counted in the order in which they run.
template <typename T, typename X>
class StepRows {
 public:
  using A = Accum<T>;

  // Indices of operands; h0 may be a negative number.
  StepRows(const ops::Recurrence& sizes, const KernelContext& ctx, int cont, int h0)
      : sizes_(sizes),
        ctx_(ctx),
        cont_(ctx.has_input(cont) ? ctx.input(cont).as<const A>() : nullptr),
        h0_(ctx.has_input(h0) ? ctx.input(h0).as<const A>() : nullptr) {}

  int64_t Row(int64_t i, int64_t n) const {
    return (sizes_.reverse ? sizes_.steps - 1 - i : i) * sizes_.items + n;
  }
  A Cont(int64_t i, int64_t n) const {
    if (cont_ == nullptr || (sizes_.reverse && i == 0)) return A(1);
    return cont_[Row(sizes_.reverse ? i - 1 : i, n)];
  }
  // The rows of an item in an operand with `columns` columns; null if it is absent.
  template <typename N>
  const N* In(int input, int64_t i, int64_t n, int64_t columns) const {
    return ctx_.has_input(input) ? ctx_.input(input).as<const N>() + Row(i, n) * columns : nullptr;
  }
  template <typename N>
  N* Out(int output, int64_t i, int64_t n, int64_t columns) const {
    return ctx_.has_output(output) ? ctx_.output(output).as<N>() + Row(i, n) * columns : nullptr;
  }
  // h', as factors and, unless it is null, as a row of a result. `h`: all rows of h.
  void Hidden(const T* h, int64_t i, int64_t n, X* factors, T* result) const {
    const int64_t width = sizes_.h_width();
    const A cont = Cont(i, n);
    if (i > 0) {
      ScaleRow(h + Row(i - 1, n) * width, width, cont, factors, result);
    } else if (h0_ != nullptr) {
      ScaleRow(h0_ + n * width, width, cont, factors, result);
    } else {
      std::fill_n(factors, width, X(0.0F));
      if (result != nullptr) std::fill_n(result, width, T(0.0F));
    }
  }

 private:
  const ops::Recurrence& sizes_;
  const KernelContext& ctx_;
  const A *cont_, *h0_;
};

// A state (N,D) of a run: what the input says, or 0.
template <typename A>
void LoadState(const KernelContext& ctx, int input, int64_t n, int64_t width, A* row) {
  if (ctx.has_input(input)) {
    ConvertRow(ctx.input(input).as<const A>() + n * width, width, row);
  } else {
    std::fill_n(row, width, A(0));
  }
}

// Stores a state or its gradient, if the node has that output.
template <typename N, typename A>
void StoreState(const KernelContext& ctx, int output, int64_t n, int64_t width, const A* row) {
  if (ctx.has_output(output)) ConvertRow(row, width, ctx.output(output).as<N>() + n * width);
}

// Nothing if the kernels of this file can serve a recurrence: its exact operands, `inputs` and
// `outputs`, must have the type of the arithmetic.
inline std::optional<Refusal> WhyNotRows(const ops::Recurrence& sizes, const KernelRequest& request,
                                         OperandSet inputs, OperandSet outputs) {
  const DType type = request.inputs[0].dtype;
  const DType wide = type == DType::kDouble ? type : DType::kFloat;
  if (sizes.steps * sizes.items * sizes.width == 0) return Refusal{"no rows"};
  const auto differs = [&](std::span<const OperandDesc> operands, OperandSet exact) {
    for (size_t i = 0; i < operands.size(); ++i) {
      const DType needed = exact.contains(i) ? wide : type;
      if (operands[i].present && operands[i].dtype != needed) return true;
    }
    return false;
  };
  if (differs(request.inputs, inputs) || differs(request.outputs, outputs))
    return Refusal{"states or gates in another type"};
  return std::nullopt;
}

// The kernel Steps<T, X> for an op, whose results `exact` have the type of the arithmetic.
template <template <typename, typename> class Steps, typename Op>
KernelOrRefusal MakeSteps(const Op& op, const KernelRequest& request, OperandSet exact) {
  if (const auto refusal = WhyNotRows(op, request, Op::kExactInputs, exact)) return *refusal;
  return MakeForFactors<Steps>(op, request.inputs[0].dtype,
                               CanMultiplyPairs(op.width) && CanMultiplyPairs(op.h_width()));
}

}  // namespace caffe::cpu
