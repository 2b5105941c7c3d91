#include "caffe/ops/soft_labels.hpp"

#include "caffe/cpu/kernels/element.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// The share of class c times its weight; `weights`: index of the operand.
double WeightedShare(const KernelContext& ctx, int64_t i, int64_t c, int weights) {
  return ElementOf(ctx.input(1), i) * ElementOr(ctx, weights, c, 1);
}

// The divisor if no position is ignored.
double DivisorOf(const ops::LabelRule& rule, const ops::ClassView& view) {
  return rule.Divisor(view.outer, view.inner, view.positions());
}

void SoftLabelLoss(const ops::SoftLabelLoss& op, const KernelContext& ctx) {
  const ops::ClassView view(ctx.input(0).shape, op.rule.axis);
  double sum = 0;
  for (int64_t position = 0; position < view.positions(); ++position) {
    for (int64_t c = 0; c < view.classes; ++c) {
      const int64_t i = view.At(position, c);
      const double share = WeightedShare(ctx, i, c, /*weights=*/2);
      if (share != 0) sum += op.Term(ElementOf(ctx.input(0), i), share);
    }
  }
  SetElement(ctx.output(0), 0, sum / DivisorOf(op.rule, view));
}

void SoftLabelLossGrad(const ops::SoftLabelLossGrad& op, const KernelContext& ctx) {
  const ops::ClassView view(ctx.output(0).shape, op.hard.rule.axis);
  const double factor = ElementOf(ctx.input(2), 0) / DivisorOf(op.hard.rule, view);
  const ops::SoftLabelLossGrad::Factors factors = op.FactorsOf(view);
  constexpr int kWeights = 3;
  ParallelFor(view.positions(), std::max<int64_t>(1, 1024 / view.classes),
              [&](int64_t begin, int64_t end) {
                for (int64_t position = begin; position < end; ++position) {
                  double sum = 0;
                  for (int64_t c = 0; c < view.classes; ++c)
                    sum += WeightedShare(ctx, view.At(position, c), c, kWeights);
                  for (int64_t c = 0; c < view.classes; ++c) {
                    const int64_t i = view.At(position, c);
                    const double share = WeightedShare(ctx, i, c, kWeights);
                    SetElement(ctx.output(0), i,
                               factor * factors.Of(ElementOf(ctx.input(0), i), share, sum));
                  }
                }
              });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SoftLabelLoss, SoftLabelLoss);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SoftLabelLossGrad, SoftLabelLossGrad);

}  // namespace
}  // namespace caffe::cpu
