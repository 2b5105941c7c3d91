// Kernels of ops that contain their own formula.
#pragma once

#include "caffe/cuda/map.cuh"
#include "caffe/ops/pointwise.hpp"

namespace caffe::cuda {

template <typename Op>
struct ApplyFormula {
  Op op;

  template <typename... A>
  __device__ auto operator()(A... x) const {
    return op.Apply(x...);
  }
};

template <typename Op>
void Unary(const Op& op, const KernelContext& ctx) {
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    Map(ctx, ApplyFormula<Op>{op}, ctx.output(0).count(), ctx.output(0).as<T>(),
        ctx.input(0).as<const T>());
  });
}

template <typename Op>
void Binary(const Op& op, const KernelContext& ctx) {
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    Map(ctx, ApplyFormula<Op>{op}, ctx.output(0).count(), ctx.output(0).as<T>(),
        ctx.input(0).as<const T>(), ctx.input(1).as<const T>());
  });
}

}  // namespace caffe::cuda
