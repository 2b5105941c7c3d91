// Softsign on the processor, for each floating-point type.
#include "caffe/ops/kernel.hpp"
#include "softsign.hpp"

namespace example {
namespace {

void Forward(const Softsign& op, const caffe::KernelContext& ctx) {
  caffe::VisitFloat(ctx.output(0).dtype, [&]<typename T>(caffe::TypeTag<T>) {
    const T* x = ctx.input(0).as<const T>();
    T* y = ctx.output(0).as<T>();
    for (int64_t i = 0; i < ctx.output(0).count(); ++i) {
      y[i] = T(op.Apply(static_cast<caffe::Accum<T>>(x[i])));
    }
  });
}

void Backward(const SoftsignGrad& op, const caffe::KernelContext& ctx) {
  caffe::VisitFloat(ctx.output(0).dtype, [&]<typename T>(caffe::TypeTag<T>) {
    using A = caffe::Accum<T>;
    const T *x = ctx.input(0).as<const T>(), *dy = ctx.input(1).as<const T>();
    T* dx = ctx.output(0).as<T>();
    for (int64_t i = 0; i < ctx.output(0).count(); ++i) {
      dx[i] = T(op.Apply(static_cast<A>(x[i]), static_cast<A>(dy[i])));
    }
  });
}

CAFFE_REGISTER_KERNEL(caffe::DeviceKind::kCpu, Softsign, Forward);
CAFFE_REGISTER_KERNEL(caffe::DeviceKind::kCpu, SoftsignGrad, Backward);

}  // namespace
}  // namespace example
