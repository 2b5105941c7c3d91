#include "caffe/ops/pair_losses.hpp"

#include <algorithm>
#include <cmath>

#include "caffe/cpu/kernels/labels.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

double Items(const KernelContext& ctx) {
  return static_cast<double>(ctx.input(0).shape.LegacyExtent(0));
}

// loss = sum of fn(i) over elements / divisor.
template <typename Fn>
void StoreSum(const KernelContext& ctx, double divisor, const Fn& fn) {
  double sum = 0;
  for (int64_t i = 0; i < ctx.input(0).count(); ++i) sum += fn(i);
  SetElement(ctx.output(0), 0, sum / divisor);
}

double Difference(const KernelContext& ctx, int64_t i) {
  return ElementOf(ctx.input(0), i) - ElementOf(ctx.input(1), i);
}

double Scalar(const KernelContext& ctx, int input) {
  return ElementOf(ctx.input(input), 0);
}

// dx[i] = fn(i).
template <typename Fn>
void StoreGradient(const KernelContext& ctx, const Fn& fn) {
  ParallelFor(ctx.output(0).count(), kPointwiseGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) SetElement(ctx.output(0), i, fn(i));
  });
}

void EuclideanLoss(const ops::EuclideanLoss&, const KernelContext& ctx) {
  StoreSum(ctx, 2 * Items(ctx), [&](int64_t i) {
    const double d = Difference(ctx, i);
    return d * d;
  });
}

void EuclideanLossGrad(const ops::EuclideanLossGrad& op, const KernelContext& ctx) {
  const double factor = op.sign * Scalar(ctx, 2) / Items(ctx);
  StoreGradient(ctx, [&](int64_t i) { return factor * Difference(ctx, i); });
}

void L1Loss(const ops::L1Loss&, const KernelContext& ctx) {
  StoreSum(ctx, Items(ctx), [&](int64_t i) { return std::abs(Difference(ctx, i)); });
}

void L1LossGrad(const ops::L1LossGrad& op, const KernelContext& ctx) {
  const double factor = op.sign * Scalar(ctx, 2) / Items(ctx);
  StoreGradient(ctx, [&](int64_t i) {
    const double d = Difference(ctx, i);
    return d > 0 ? factor : d < 0 ? -factor : 0;
  });
}

double WeightAt(const KernelContext& ctx, int weights, int64_t i) {
  return ctx.has_input(weights) ? ElementOf(ctx.input(weights), i) : 1;
}

void SmoothL1Loss(const ops::SmoothL1Loss& op, const KernelContext& ctx) {
  StoreSum(ctx, op.divisor.value_or(Items(ctx)), [&](int64_t i) {
    return WeightAt(ctx, 3, i) * op.Of(Difference(ctx, i) * WeightAt(ctx, 2, i));
  });
}

void SmoothL1LossGrad(const ops::SmoothL1LossGrad& op, const KernelContext& ctx) {
  const double factor = op.sign * Scalar(ctx, 2) / op.divisor.value_or(Items(ctx));
  StoreGradient(ctx, [&](int64_t i) {
    const double weight = WeightAt(ctx, 3, i);
    return factor * WeightAt(ctx, 4, i) * op.Of(Difference(ctx, i) * weight, weight);
  });
}

// The divisor of targets: N items of count / N elements, without ignored elements.
double Divisor(const ops::LabelRule& rule, const KernelContext& ctx) {
  const Shape& shape = ctx.input(0).shape;
  const int64_t outer = shape.LegacyExtent(0);
  int64_t valid = 0;
  for (int64_t i = 0; i < shape.count(); ++i) {
    valid += !IsIgnored(rule.ignore_label, LabelAt(ctx.input(1), i));
  }
  return rule.Divisor(outer, shape.count() / std::max<int64_t>(outer, 1), valid);
}

void SigmoidCrossEntropyLoss(const ops::SigmoidCrossEntropyLoss& op, const KernelContext& ctx) {
  StoreSum(ctx, Divisor(op.rule, ctx), [&](int64_t i) {
    if (IsIgnored(op.rule.ignore_label, LabelAt(ctx.input(1), i))) return 0.0;
    return op.cross_entropy.Of(ElementOf(ctx.input(0), i), ElementOf(ctx.input(1), i));
  });
}

void SigmoidCrossEntropyLossGrad(const ops::SigmoidCrossEntropyLossGrad& op,
                                 const KernelContext& ctx) {
  const double factor = Scalar(ctx, 2) / Divisor(op.rule, ctx);
  StoreGradient(ctx, [&](int64_t i) {
    if (IsIgnored(op.rule.ignore_label, LabelAt(ctx.input(1), i))) return 0.0;
    return factor * op.cross_entropy.Slope(ElementOf(ctx.input(0), i), ElementOf(ctx.input(1), i));
  });
}

double SquaredDistance(const KernelContext& ctx, int64_t row, int64_t width) {
  double sum = 0;
  for (int64_t i = row * width; i < (row + 1) * width; ++i) {
    const double d = Difference(ctx, i);
    sum += d * d;
  }
  return sum;
}

void ContrastiveLoss(const ops::ContrastiveLoss& op, const KernelContext& ctx) {
  const int64_t rows = ctx.input(0).shape[0], width = ctx.input(0).shape.count(1);
  double sum = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const double squared = SquaredDistance(ctx, row, width);
    if (LabelAt(ctx.input(2), row) != 0) {
      sum += squared;
    } else if (op.legacy) {
      sum += std::max(op.margin - squared, 0.0);
    } else {
      const double short_of = std::max(op.margin - std::sqrt(squared), 0.0);
      sum += short_of * short_of;
    }
  }
  SetElement(ctx.output(0), 0, sum / (2 * static_cast<double>(rows)));
}

void ContrastiveLossGrad(const ops::ContrastiveLossGrad& op, const KernelContext& ctx) {
  const int64_t rows = ctx.input(0).shape[0], width = ctx.input(0).shape.count(1);
  const double factor = op.sign * Scalar(ctx, 3) / static_cast<double>(rows);
  for (int64_t row = 0; row < rows; ++row) {
    double slope = factor;
    if (LabelAt(ctx.input(2), row) == 0) {
      const double squared = SquaredDistance(ctx, row, width);
      const double distance = std::sqrt(squared);
      const double short_of = op.margin - (op.legacy ? squared : distance);
      slope = short_of <= 0 ? 0 : op.legacy ? -factor : -factor * short_of / (distance + 1e-4);
    }
    for (int64_t i = row * width; i < (row + 1) * width; ++i) {
      SetElement(ctx.output(0), i, slope * Difference(ctx, i));
    }
  }
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::EuclideanLoss, EuclideanLoss);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::EuclideanLossGrad, EuclideanLossGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::L1Loss, L1Loss);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::L1LossGrad, L1LossGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SmoothL1Loss, SmoothL1Loss);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SmoothL1LossGrad, SmoothL1LossGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SigmoidCrossEntropyLoss, SigmoidCrossEntropyLoss);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SigmoidCrossEntropyLossGrad,
                      SigmoidCrossEntropyLossGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::ContrastiveLoss, ContrastiveLoss);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::ContrastiveLossGrad, ContrastiveLossGrad);

}  // namespace
}  // namespace caffe::cpu
