#include "caffe/ops/constant.hpp"

#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

void Constant(const ops::Constant& op, const KernelContext& ctx) {
  const TensorView& y = ctx.output(0);
  CAFFE_ASSERT(static_cast<int64_t>(op.values->size()) == y.count());
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    for (int64_t i = 0; i < y.count(); ++i) y.as<T>()[i] = T((*op.values)[i]);
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Constant, Constant);

}  // namespace
}  // namespace caffe::cpu
