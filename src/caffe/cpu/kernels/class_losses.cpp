#include "caffe/ops/class_losses.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "caffe/cpu/kernels/labels.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

constexpr double kLeastProbability = 1e-20;

// Rows of classes: all axes after the first are flattened.
ClassView Rows(const Shape& shape) {
  return ClassView(Shape{shape[0], shape.count(1)}, 1);
}

// Calls fn(index, margin, s) for each score; the margin of a NaN is NaN.
template <typename Fn>
void ForMargins(const KernelContext& ctx, const Fn& fn) {
  const ClassView view = Rows(ctx.input(0).shape);
  for (int64_t n = 0; n < view.outer; ++n) {
    const int64_t label = LabelAt(ctx.input(1), n);
    RequireLabel(label, view.classes, n);
    for (int64_t c = 0; c < view.classes; ++c) {
      const int64_t i = n * view.classes + c;
      const double s = c == label ? 1 : -1;
      fn(i, std::max(1 - s * ElementOf(ctx.input(0), i), 0.0), s);
    }
  }
}

void HingeLoss(const ops::HingeLoss& op, const KernelContext& ctx) {
  double sum = 0;
  ForMargins(ctx,
             [&](int64_t, double margin, double) { sum += op.squared ? margin * margin : margin; });
  SetElement(ctx.output(0), 0, sum / static_cast<double>(ctx.input(0).shape[0]));
}

void HingeLossGrad(const ops::HingeLossGrad& op, const KernelContext& ctx) {
  const double factor = ElementOf(ctx.input(2), 0) / static_cast<double>(ctx.input(0).shape[0]);
  ForMargins(ctx, [&](int64_t i, double margin, double s) {
    const double slope = op.squared ? 2 * margin : static_cast<double>(margin > 0);
    SetElement(ctx.output(0), i, -s * slope * factor);
  });
}

void MultinomialLogisticLoss(const ops::MultinomialLogisticLoss&, const KernelContext& ctx) {
  const ClassView view = Rows(ctx.input(0).shape);
  double sum = 0;
  for (int64_t n = 0; n < view.outer; ++n) {
    const int64_t label = LabelAt(ctx.input(1), n);
    RequireLabel(label, view.classes, n);
    const double probability = ElementOf(ctx.input(0), n * view.classes + label);
    sum -= std::log(std::max(probability, kLeastProbability));
  }
  SetElement(ctx.output(0), 0, sum / static_cast<double>(view.outer));
}

void MultinomialLogisticLossGrad(const ops::MultinomialLogisticLossGrad&,
                                 const KernelContext& ctx) {
  const ClassView view = Rows(ctx.input(0).shape);
  const double factor = ElementOf(ctx.input(2), 0) / static_cast<double>(view.outer);
  std::memset(ctx.output(0).data, 0, ctx.output(0).bytes());
  for (int64_t n = 0; n < view.outer; ++n) {
    const int64_t label = LabelAt(ctx.input(1), n);
    RequireLabel(label, view.classes, n);  // labels may have changed since forward
    const int64_t at = n * view.classes + label;
    SetElement(ctx.output(0), at,
               -factor / std::max(ElementOf(ctx.input(0), at), kLeastProbability));
  }
}

void InfogainLoss(const ops::InfogainLoss& op, const KernelContext& ctx) {
  const ClassView view(ctx.input(0).shape, op.rule.axis);
  double sum = 0;
  int64_t valid = 0;
  for (int64_t position = 0; position < view.positions(); ++position) {
    const int64_t label = LabelAt(ctx.input(1), position);
    if (IsIgnored(op.rule.ignore_label, label)) continue;
    RequireLabel(label, view.classes, position);
    for (int64_t c = 0; c < view.classes; ++c) {
      const double probability = ElementOf(ctx.input(0), view.At(position, c));
      sum -= ElementOf(ctx.input(2), label * view.classes + c) *
             std::log(std::max(probability, kLeastProbability));
    }
    ++valid;
  }
  SetElement(ctx.output(0), 0, sum / op.rule.Divisor(view.outer, view.inner, valid));
}

void InfogainLossGrad(const ops::InfogainLossGrad& op, const KernelContext& ctx) {
  const ClassView view(ctx.output(0).shape, op.rule.axis);
  const TensorView &p = ctx.input(0), &h = ctx.input(2);
  int64_t valid = 0;
  for (int64_t i = 0; i < view.positions(); ++i) {
    valid += !IsIgnored(op.rule.ignore_label, LabelAt(ctx.input(1), i));
  }
  const double factor = ElementOf(ctx.input(3), 0) / op.rule.Divisor(view.outer, view.inner, valid);
  for (int64_t position = 0; position < view.positions(); ++position) {
    const int64_t label = LabelAt(ctx.input(1), position);
    const bool ignored = IsIgnored(op.rule.ignore_label, label);
    if (!ignored) RequireLabel(label, view.classes, position);
    double row_sum = 0;
    for (int64_t c = 0; c < view.classes && !ignored; ++c) {
      row_sum += ElementOf(h, label * view.classes + c);
    }
    for (int64_t c = 0; c < view.classes; ++c) {
      const int64_t at = view.At(position, c);
      const double slope =
          ignored ? 0 : ElementOf(p, at) * row_sum - ElementOf(h, label * view.classes + c);
      SetElement(ctx.output(0), at, ignored ? 0 : factor * slope);
    }
  }
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::HingeLoss, HingeLoss);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::HingeLossGrad, HingeLossGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::MultinomialLogisticLoss, MultinomialLogisticLoss);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::MultinomialLogisticLossGrad,
                      MultinomialLogisticLossGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::InfogainLoss, InfogainLoss);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::InfogainLossGrad, InfogainLossGrad);

}  // namespace
}  // namespace caffe::cpu
