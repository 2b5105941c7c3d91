#include "caffe/cuda/launch.cuh"
#include "caffe/cuda/numbers.cuh"
#include "caffe/ops/slide_rows.hpp"

namespace caffe::cuda {
namespace {

// A column of an item: `before` and `after` may be the same memory, so rows move one after the
// other.
struct SlideColumn {
  ops::SlideRows op;
  Numbers before, cont, x, after;

  __device__ void operator()(int64_t i) const {
    int64_t column;
    const int64_t item = Divide(i, op.columns, &column);
    const int64_t first = item * op.length * op.columns + column;
    const bool goes_on = cont.GetOr(item, 1.0F) != 0;
    const int64_t kept = op.length - op.rows;
    for (int64_t row = 0; row < kept; ++row) {
      const int64_t from = first + (row + op.rows) * op.columns;
      after.Set(first + row * op.columns, goes_on ? before.Get<double>(from) : 0.0);
    }
    for (int64_t row = 0; row < op.rows; ++row) {
      const int64_t from = (item * op.rows + row) * op.step + op.offset + column;
      after.Set(first + (kept + row) * op.columns, x.GetOr(from, 1.0));
    }
  }
};

void SlideRows(const ops::SlideRows& op, const KernelContext& ctx) {
  ForEach(ctx, ctx.output(0).count() / op.length,
          SlideColumn{op, InputNumbers(ctx, op.kBefore), InputNumbers(ctx, op.kCont),
                      InputNumbers(ctx, op.kX), OutputNumbers(ctx, 0)});
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::SlideRows, SlideRows);

}  // namespace
}  // namespace caffe::cuda
