#include "caffe/ops/constant.hpp"

#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

void Constant(const ops::Constant& op, const KernelContext& ctx) {
  const TensorView& y = ctx.output(0);
  CAFFE_ASSERT(static_cast<int64_t>(op.values->size()) == y.count());
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    const auto* const from = op.values->data();
    T* const to = y.as<T>();
    ParallelFor(y.count(), kPointwiseGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = T(from[i]);
    });
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Constant, Constant);

}  // namespace
}  // namespace caffe::cpu
