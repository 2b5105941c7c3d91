#include "caffe/ops/convert.hpp"

#include <cstring>
#include <type_traits>

#include "caffe/cpu/half_rows.hpp"
#include "caffe/cpu/kernels/int8.hpp"
#include "caffe/cpu/kernels/int8_convert.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/cpu/transpose.hpp"
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

void Reorder(const ops::Reorder&, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  if (Is8Bit(x.dtype) || Is8Bit(y.dtype)) return ConvertNumbers(x, y);
  VisitFloat(x.dtype, [&]<typename From>(TypeTag<From>) {
    VisitFloat(y.dtype, [&]<typename To>(TypeTag<To>) {
      TransposeImages<From, To>(x, y, std::is_same_v<From, To>, CastRange<From, To>);
    });
  });
}

void View(const ops::View&, const KernelContext& ctx) {
  CopyBytes(ctx.input(0), ctx.output(0));
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

// Copies rows of `bytes` bytes, one per outer index, unless they are in place already.
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

// The same for 8-bit numbers, in programs.
template <typename OpType, void (*function)(const OpType&, const KernelContext&)>
KernelOrRefusal Move(const OpType& op, const KernelRequest& request) {
  const DType made = request.outputs[0].dtype;
  for (const OperandDesc& input : request.inputs) {
    if (!Is8Bit(made) || input.dtype != made) return Refusal{"only 8-bit numbers of one type"};
  }
  return Kernel{"", [op](const KernelContext& ctx) { function(op, ctx); }};
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Cast, Cast);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Reorder, Reorder);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::View, View);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Fill, Fill);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::LossWeight, LossWeight);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Concat, Concat);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SliceOf, SliceOf);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::HostCall, HostCall);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::View, "view-int8-reference",
                              KernelRank::kReference, (Move<ops::View, View>), Int8Traits());
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Concat, "concat-int8-reference",
                              KernelRank::kReference, (Move<ops::Concat, Concat>), Int8Traits());
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::SliceOf, "slice-of-int8-reference",
                              KernelRank::kReference, (Move<ops::SliceOf, SliceOf>), Int8Traits());

}  // namespace
}  // namespace caffe::cpu
