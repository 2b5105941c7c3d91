#include "caffe/ops/fake_quantize.hpp"

#include <algorithm>

#include "caffe/cpu/kernels/pointwise.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// Uses the arithmetic of QuantizeRow(), so that 8-bit plans have the same weights.
template <typename T>
CAFFE_CPU_CLONES void QuantizeAndBack(const T* w, int64_t count, int64_t step, T* y) {
  T largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(w[i * step]));
  const T scale = std::max(largest / T(127), T(ops::kLeastWeightScale));
  for (int64_t i = 0; i < count; ++i) y[i * step] = scale * std::nearbyint(w[i * step] / scale);
}

void FakeQuantizeRows(const ops::FakeQuantizeRows& op, const KernelContext& ctx) {
  const int64_t length = ctx.output(0).count() / std::max<int64_t>(op.rows, 1);
  const int64_t grain = std::max<int64_t>(1, kPointwiseGrain / std::max<int64_t>(length, 1));
  const auto run = [&]<typename T>(TypeTag<T>) {
    const T* w = ctx.input(0).as<const T>();
    T* y = ctx.output(0).as<T>();
    ParallelFor(op.rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t first = op.step == 1 ? row * length : row;
        QuantizeAndBack(w + first, length, op.step, y + first);
      }
    });
  };
  ctx.output(0).dtype == DType::kDouble ? run(TypeTag<double>{}) : run(TypeTag<float>{});
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::FakeQuantize, Unary<ops::FakeQuantize>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::FakeQuantizeGrad, Binary<ops::FakeQuantizeGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::FakeQuantizeRows, FakeQuantizeRows);

}  // namespace
}  // namespace caffe::cpu
