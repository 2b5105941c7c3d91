#include "caffe/ops/class_losses.hpp"

#include <algorithm>
#include <cmath>

#include "caffe/cpu/kernels/labels.hpp"
#include "caffe/cpu/kernels/wide.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

constexpr double kLeastProbability = 1e-20;

// Rows of classes, whatever the axes behind the first.
ClassView Rows(const Shape& shape) {
  return ClassView(Shape{shape[0], shape.count(1)}, 1);
}

// Calls fn(index, margin, s) for each score; a NaN's margin is NaN.
template <typename T, typename Fn>
void ForMargins(const KernelContext& ctx, const Fn& fn) {
  const ClassView view = Rows(ctx.input(0).shape);
  const T* x = ctx.input(0).as<const T>();
  for (int64_t n = 0; n < view.outer; ++n) {
    const int64_t label = LabelAt<T>(ctx.input(1), n);
    RequireLabel(label, view.classes, n);
    for (int64_t c = 0; c < view.classes; ++c) {
      const int64_t i = n * view.classes + c;
      const double s = c == label ? 1 : -1;
      fn(i, std::max(1 - s * static_cast<double>(x[i]), 0.0), s);
    }
  }
}

void HingeLoss(const ops::HingeLoss& op, const KernelContext& ctx) {
  VisitWide(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    double sum = 0;
    ForMargins<T>(
        ctx, [&](int64_t, double margin, double) { sum += op.squared ? margin * margin : margin; });
    *ctx.output(0).as<T>() = static_cast<T>(sum / static_cast<double>(ctx.input(0).shape[0]));
  });
}

void HingeLossGrad(const ops::HingeLossGrad& op, const KernelContext& ctx) {
  VisitWide(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    T* dx = ctx.output(0).as<T>();
    const double factor = static_cast<double>(*ctx.input(2).as<const T>()) /
                          static_cast<double>(ctx.input(0).shape[0]);
    ForMargins<T>(ctx, [&](int64_t i, double margin, double s) {
      const double slope = op.squared ? 2 * margin : static_cast<double>(margin > 0);
      dx[i] = static_cast<T>(-s * slope * factor);
    });
  });
}

void MultinomialLogisticLoss(const ops::MultinomialLogisticLoss&, const KernelContext& ctx) {
  const ClassView view = Rows(ctx.input(0).shape);
  VisitWide(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    const T* p = ctx.input(0).as<const T>();
    double sum = 0;
    for (int64_t n = 0; n < view.outer; ++n) {
      const int64_t label = LabelAt<T>(ctx.input(1), n);
      RequireLabel(label, view.classes, n);
      sum -= std::log(std::max<double>(p[n * view.classes + label], kLeastProbability));
    }
    *ctx.output(0).as<T>() = static_cast<T>(sum / static_cast<double>(view.outer));
  });
}

void MultinomialLogisticLossGrad(const ops::MultinomialLogisticLossGrad&,
                                 const KernelContext& ctx) {
  const ClassView view = Rows(ctx.input(0).shape);
  VisitWide(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    const T* p = ctx.input(0).as<const T>();
    T* dp = ctx.output(0).as<T>();
    const double factor =
        static_cast<double>(*ctx.input(2).as<const T>()) / static_cast<double>(view.outer);
    std::fill_n(dp, ctx.output(0).count(), T(0));
    for (int64_t n = 0; n < view.outer; ++n) {
      const int64_t label = LabelAt<T>(ctx.input(1), n);
      RequireLabel(label, view.classes, n);  // it may have been changed since forward
      const int64_t at = n * view.classes + label;
      dp[at] = static_cast<T>(-factor / std::max<double>(p[at], kLeastProbability));
    }
  });
}

void InfogainLoss(const ops::InfogainLoss& op, const KernelContext& ctx) {
  const ClassView view(ctx.input(0).shape, op.rule.axis);
  VisitWide(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    const T* p = ctx.input(0).as<const T>();
    const T* h = ctx.input(2).as<const T>();
    double sum = 0;
    int64_t valid = 0;
    for (int64_t position = 0; position < view.positions(); ++position) {
      const int64_t label = LabelAt<T>(ctx.input(1), position);
      if (IsIgnored(op.rule.ignore_label, label)) continue;
      RequireLabel(label, view.classes, position);
      for (int64_t c = 0; c < view.classes; ++c) {
        const double probability = static_cast<double>(p[view.At(position, c)]);
        sum -= static_cast<double>(h[label * view.classes + c]) *
               std::log(std::max(probability, kLeastProbability));
      }
      ++valid;
    }
    *ctx.output(0).as<T>() = static_cast<T>(sum / op.rule.Divisor(view.outer, view.inner, valid));
  });
}

void InfogainLossGrad(const ops::InfogainLossGrad& op, const KernelContext& ctx) {
  const ClassView view(ctx.output(0).shape, op.rule.axis);
  VisitWide(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    const T* p = ctx.input(0).as<const T>();
    const T* h = ctx.input(2).as<const T>();
    T* dx = ctx.output(0).as<T>();
    int64_t valid = 0;
    for (int64_t i = 0; i < view.positions(); ++i) {
      valid += !IsIgnored(op.rule.ignore_label, LabelAt<T>(ctx.input(1), i));
    }
    const double factor = static_cast<double>(*ctx.input(3).as<const T>()) /
                          op.rule.Divisor(view.outer, view.inner, valid);
    for (int64_t position = 0; position < view.positions(); ++position) {
      const int64_t label = LabelAt<T>(ctx.input(1), position);
      const bool ignored = IsIgnored(op.rule.ignore_label, label);
      if (!ignored) RequireLabel(label, view.classes, position);
      double row_sum = 0;
      for (int64_t c = 0; c < view.classes && !ignored; ++c) {
        row_sum += static_cast<double>(h[label * view.classes + c]);
      }
      for (int64_t c = 0; c < view.classes; ++c) {
        const int64_t at = view.At(position, c);
        dx[at] = ignored
                     ? T(0)
                     : static_cast<T>(factor * (static_cast<double>(p[at]) * row_sum -
                                                static_cast<double>(h[label * view.classes + c])));
      }
    }
  });
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
