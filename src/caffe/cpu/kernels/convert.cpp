#include "caffe/ops/convert.hpp"

#include <cstring>
#include <type_traits>

#include "caffe/cpu/half_rows.hpp"
#include "caffe/cpu/kernels/int8_convert.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

template <typename From, typename To>
CAFFE_CPU_CLONES void CastRange(const From* x, To* y, int64_t count) {
  if constexpr (requires { ConvertRow(x, y, count); }) return ConvertRow(x, y, count);
  for (int64_t i = 0; i < count; ++i) y[i] = To(static_cast<Accum<From>>(x[i]));
}

void Cast(const ops::Cast&, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  if (Is8Bit(x.dtype) || Is8Bit(y.dtype)) return ConvertNumbers(x, y);
  VisitFloat(x.dtype, [&]<typename From>(TypeTag<From>) {
    VisitFloat(y.dtype, [&]<typename To>(TypeTag<To>) {
      ParallelFor(y.count(), kPointwiseGrain, [&](int64_t begin, int64_t end) {
        CastRange(x.as<const From>() + begin, y.as<To>() + begin, end - begin);
      });
    });
  });
}

// Transposes a rows x columns matrix in blocks that stay in the first-level cache.
template <typename From, typename To>
CAFFE_CPU_CLONES void Transpose(const From* x, int64_t rows, int64_t columns, To* y) {
  constexpr int64_t kBlock = 16;
  for (int64_t r0 = 0; r0 < rows; r0 += kBlock) {
    for (int64_t c0 = 0; c0 < columns; c0 += kBlock) {
      const int64_t r1 = std::min(r0 + kBlock, rows), c1 = std::min(c0 + kBlock, columns);
      for (int64_t r = r0; r < r1; ++r) {
        for (int64_t c = c0; c < c1; ++c) {
          if constexpr (std::is_same_v<From, To>) {
            y[c * rows + r] = x[r * columns + c];
          } else {
            y[c * rows + r] = To(static_cast<Accum<From>>(x[r * columns + c]));
          }
        }
      }
    }
  }
}

void Reorder(const ops::Reorder&, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  if (Is8Bit(x.dtype) || Is8Bit(y.dtype)) return ConvertNumbers(x, y);
  const int64_t items = x.shape[0], channels = x.shape[1], pixels = x.shape.count(2);
  const bool to_last = y.layout == Layout::kChannelsLast;
  const int64_t rows = to_last ? channels : pixels, columns = to_last ? pixels : channels;
  VisitFloat(x.dtype, [&]<typename From>(TypeTag<From>) {
    VisitFloat(y.dtype, [&]<typename To>(TypeTag<To>) {
      ParallelFor(items, 1, [&](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end; ++n) {
          const int64_t offset = n * channels * pixels;
          Transpose(x.as<const From>() + offset, rows, columns, y.as<To>() + offset);
        }
      });
    });
  });
}

void View(const ops::View&, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  if (x.data == y.data) return;
  ParallelFor(static_cast<int64_t>(y.bytes()), 1 << 20, [&](int64_t begin, int64_t end) {
    std::memcpy(y.as<char>() + begin, x.as<const char>() + begin, end - begin);
  });
}

void Fill(const ops::Fill& op, const KernelContext& ctx) {
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    std::fill_n(ctx.output(0).as<T>(), ctx.output(0).count(), T(op.value));
  });
}

void LossWeight(const ops::LossWeight& op, const KernelContext& ctx) {
  const double value = ctx.loss_scale == nullptr ? op.weight : op.weight * *ctx.loss_scale;
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    std::fill_n(ctx.output(0).as<T>(), ctx.output(0).count(), T(value));
  });
}

// Copies `bytes` long rows, one per outer index, unless they lie there already.
void CopyRows(const char* from, int64_t from_stride, char* to, int64_t to_stride, int64_t bytes,
              int64_t rows) {
  if (from == to) return;
  ParallelFor(rows, std::max<int64_t>(1, (1 << 18) / std::max<int64_t>(bytes, 1)),
              [&](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r) {
                  std::memcpy(to + r * to_stride, from + r * from_stride, bytes);
                }
              });
}

void Concat(const ops::Concat& op, const KernelContext& ctx) {
  const TensorView& y = ctx.output(0);
  const int64_t element = static_cast<int64_t>(SizeOf(y.dtype));
  const ops::AxisView whole = ops::AroundAxis(y, op.axis);
  int64_t offset = 0;
  for (const TensorView& x : ctx.inputs) {
    const ops::AxisView part = ops::AroundAxis(x, op.axis);
    const int64_t row = part.extent * part.inner * element;
    CopyRows(x.as<const char>(), row, y.as<char>() + offset, whole.extent * whole.inner * element,
             row, part.outer);
    offset += row;
  }
}

void SliceOf(const ops::SliceOf& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const int64_t element = static_cast<int64_t>(SizeOf(y.dtype));
  const ops::AxisView whole = ops::AroundAxis(x, op.axis), part = ops::AroundAxis(y, op.axis);
  const int64_t row = part.extent * part.inner * element;
  CopyRows(x.as<const char>() + op.offset * whole.inner * element,
           whole.extent * whole.inner * element, y.as<char>(), row, row, part.outer);
}

void HostCall(const ops::HostCall& op, const KernelContext& ctx) {
  std::vector<Shape> new_top_shapes = op.call(ctx);
  if (ctx.new_top_shapes != nullptr) *ctx.new_top_shapes = std::move(new_top_shapes);
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Cast, Cast);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Reorder, Reorder);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::View, View);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Fill, Fill);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::LossWeight, LossWeight);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Concat, Concat);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SliceOf, SliceOf);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::HostCall, HostCall);

}  // namespace
}  // namespace caffe::cpu
