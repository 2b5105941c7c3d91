// Kernels of ops that contain their own formula.
#pragma once

#include "caffe/cpu/kernels/simd_math.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/ops/pointwise.hpp"

namespace caffe::cpu {

template <typename Op>
void Unary(const Op& op, const KernelContext& ctx) {
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    Map<T>([op](Accum<T> x) CAFFE_FORCE_INLINE { return op.Apply(x); }, ctx.input(0).as<const T>(),
           ctx.output(0).as<T>(), ctx.output(0).count());
  });
}

template <typename Op>
void Binary(const Op& op, const KernelContext& ctx) {
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    Map<T>([op](Accum<T> x, Accum<T> z) CAFFE_FORCE_INLINE { return op.Apply(x, z); },
           ctx.input(0).as<const T>(), ctx.input(1).as<const T>(), ctx.output(0).as<T>(),
           ctx.output(0).count());
  });
}

}  // namespace caffe::cpu
