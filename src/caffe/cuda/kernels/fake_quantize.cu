#include <cmath>

#include "caffe/cuda/groups.cuh"
#include "caffe/cuda/kernels/pointwise.cuh"
#include "caffe/ops/fake_quantize.hpp"

namespace caffe::cuda {
namespace {

template <typename T>
struct QuantizeAndBack {
  Rows rows;
  const T* w;
  T* y;

  template <typename Group>
  __device__ void operator()(int64_t row, const Group& group) const {
    const int64_t first = rows.Offset(row);
    T largest = 0;
    for (int64_t i = group.rank(); i < rows.length; i += group.size()) {
      const T size = std::abs(w[first + i * rows.step]);
      largest = largest < size ? size : largest;
    }
    const T least = T(ops::kLeastWeightScale);
    T scale = group.Reduce(Largest{}, largest) / T(127);
    scale = scale < least ? least : scale;
    for (int64_t i = group.rank(); i < rows.length; i += group.size()) {
      const int64_t at = first + i * rows.step;
      y[at] = scale * std::nearbyint(w[at] / scale);
    }
  }
};

void FakeQuantizeRows(const ops::FakeQuantizeRows& op, const KernelContext& ctx) {
  const int64_t rows = op.rows;
  if (rows == 0) return;
  const Rows of_w{rows, ctx.output(0).count() / rows, op.step};
  const auto run = [&]<typename T>(TypeTag<T>) {
    ForRows(ctx, of_w, QuantizeAndBack<T>{of_w, ctx.input(0).as<const T>(), ctx.output(0).as<T>()});
  };
  ctx.output(0).dtype == DType::kDouble ? run(TypeTag<double>{}) : run(TypeTag<float>{});
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::FakeQuantize, Unary<ops::FakeQuantize>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::FakeQuantizeGrad, Binary<ops::FakeQuantizeGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::FakeQuantizeRows, FakeQuantizeRows);

}  // namespace
}  // namespace caffe::cuda
