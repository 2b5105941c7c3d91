#include "caffe/ops/pointwise.hpp"

#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

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

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Relu, Unary<ops::Relu>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::ReluGrad, Binary<ops::ReluGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Sigmoid, Unary<ops::Sigmoid>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SigmoidGrad, Binary<ops::SigmoidGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Tanh, Unary<ops::Tanh>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::TanhGrad, Binary<ops::TanhGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::ScaleBy, Unary<ops::ScaleBy>);

}  // namespace
}  // namespace caffe::cpu
