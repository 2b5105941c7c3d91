#include "caffe/ops/box_losses.hpp"

#include <cstring>

#include "caffe/cpu/kernels/each_element.hpp"

namespace caffe::cpu {
namespace {

// Elements of a known type, in double.
template <typename T>
struct Doubles {
  const T* data;
  double operator[](int64_t i) const { return static_cast<double>(data[i]); }
};

void BoxClassLosses(const ops::BoxClassLosses& op, const KernelContext& ctx) {
  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    const Doubles<T> scores{ctx.input(0).as<const T>()};
    ParallelFor(ctx.output(0).count(), 64, [&](int64_t begin, int64_t end) {
      for (int64_t box = begin; box < end; ++box)
        SetElement(ctx.output(0), box, op.Element<double>(box, scores));
    });
  });
}

// Gradients of `width` elements for each box: those of element(i), or 0 for the many boxes whose
// `choice` is negative.
template <typename Element>
void EachChosenBox(const KernelContext& ctx, int64_t width, ops::BoxChoice choice,
                   const Element& element) {
  const TensorView &choices = ctx.input(1), &dx = ctx.output(0);
  const size_t row_bytes = static_cast<size_t>(width) * SizeOf(dx.dtype);
  const bool adds = ctx.accumulates(0);
  ParallelFor(dx.count() / width, 64, [&](int64_t begin, int64_t end) {
    for (int64_t box = begin; box < end; ++box) {
      if (ElementOf(choices, box * ops::kChoices + choice) < 0) {
        if (!adds) std::memset(dx.as<char>() + static_cast<size_t>(box) * row_bytes, 0, row_bytes);
        continue;
      }
      for (int64_t i = box * width; i < (box + 1) * width; ++i) {
        const double value = element(i);
        SetElement(dx, i, adds ? ElementOf(dx, i) + value : value);
      }
    }
  });
}

StoredOperand<double> Stored(const KernelContext& ctx, int input) {
  return {&ctx.input(input)};
}

void BoxScoresGrad(const ops::BoxScoresGrad& op, const KernelContext& ctx) {
  EachChosenBox(ctx, op.classes, ops::kClass, [&](int64_t i) {
    return op.Element<double>(i, Stored(ctx, 0), Stored(ctx, 1), Stored(ctx, 2), Stored(ctx, 3));
  });
}

void BoxLocationsGrad(const ops::BoxLocationsGrad& op, const KernelContext& ctx) {
  EachChosenBox(ctx, 4 * op.of.locations, ops::kLocation, [&](int64_t i) {
    return op.Element<double>(i, Stored(ctx, 0), Stored(ctx, 1), Stored(ctx, 2), Stored(ctx, 3),
                              Stored(ctx, 4));
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::BoxClassLosses, BoxClassLosses);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::BoxLosses, EachElement<ops::BoxLosses>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::BoxScoresGrad, BoxScoresGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::BoxLocationsGrad, BoxLocationsGrad);

}  // namespace
}  // namespace caffe::cpu
