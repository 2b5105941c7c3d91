// Applies an op's epilogue element by element, for reference kernels.
#pragma once

#include "caffe/cpu/kernels/element.hpp"
#include "caffe/ops/epilogue.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {

// `value` is element i of the result, in memory order, and belongs to channel c.
template <typename A>
A ApplyEpilogue(const KernelContext& ctx, const ops::Epilogue& epilogue, int64_t c, int64_t i,
                A value) {
  for (const ops::Pointwise& entry : epilogue) {
    switch (entry.kind) {
      case ops::Pointwise::Kind::kAdd:
        value += static_cast<A>(ElementOf(ctx.input(entry.operand), i));
        break;
      case ops::Pointwise::Kind::kScale:
        value *= static_cast<A>(ElementOf(ctx.input(entry.operand), c));
        break;
      case ops::Pointwise::Kind::kShift:
        value += static_cast<A>(ElementOf(ctx.input(entry.operand), c));
        break;
      case ops::Pointwise::Kind::kReluGrad:
        if (!(ElementOf(ctx.input(entry.operand), i) > 0)) value *= static_cast<A>(entry.a);
        break;
      default:
        value = ops::ApplyPointwise(entry, value);
    }
  }
  return value;
}

}  // namespace caffe::cpu
