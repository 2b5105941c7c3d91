#include "caffe/cuda/groups.cuh"
#include "caffe/cuda/kernels/sum_loss.cuh"
#include "caffe/ops/soft_labels.hpp"

namespace caffe::cuda {
namespace {

// Class shares times class weights.
struct WeightedShares {
  Numbers shares, weights;

  __device__ double At(int64_t i, int64_t c) const {
    return shares.Get<double>(i) * weights.GetOr<double>(c, 1);
  }
};

double DivisorOf(const ops::LabelRule& rule, const ClassView& view) {
  return rule.Divisor(view.outer, view.inner, view.positions());
}

struct AddSoftTerm {
  int64_t classes, inner;
  Numbers p;
  WeightedShares shares;

  __device__ void operator()(int64_t, int64_t i, Sums<1, double>& sums) const {
    const int64_t c = Remainder(Divide(i, inner), classes);
    sums.values[0] += ops::SoftLabelLoss::Term(p.Get<double>(i), shares.At(i, c));
  }
};

KernelOrRefusal MakeSoftLabelLoss(const ops::SoftLabelLoss& op, const KernelRequest& request) {
  const ClassView view(request.inputs[0].shape, op.rule.axis);
  const Covered all = Everything(request.inputs[0].count());
  const double divisor = DivisorOf(op.rule, view);
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  SumCovered<1, double>(ctx, all, ctx.workspace,
                                        AddSoftTerm{view.classes,
                                                    view.inner,
                                                    InputNumbers(ctx, 0),
                                                    {InputNumbers(ctx, 1), InputNumbers(ctx, 2)}},
                                        StoreMean{divisor, OutputNumbers(ctx, 0)});
                },
                SumWorkspace<1, double>(all)};
}

struct SoftLabelGradientRow {
  Rows rows;
  double divisor;
  ops::SoftLabelLossGrad::Factors factors;
  Numbers p, dloss, dx;
  WeightedShares shares;

  template <typename Group>
  __device__ void operator()(int64_t row, const Group& group) const {
    const int64_t offset = rows.Offset(row);
    double sum = 0;
    for (int64_t c = group.rank(); c < rows.length; c += group.size()) {
      sum += shares.At(offset + c * rows.step, c);
    }
    sum = group.Reduce(Sum{}, sum);
    const double factor = dloss.Get<double>(0) / divisor;
    for (int64_t c = group.rank(); c < rows.length; c += group.size()) {
      const int64_t i = offset + c * rows.step;
      dx.Set(i, factor * factors.Of(p.Get<double>(i), shares.At(i, c), sum));
    }
  }
};

void SoftLabelLossGrad(const ops::SoftLabelLossGrad& op, const KernelContext& ctx) {
  const ClassView view(ctx.output(0).shape, op.hard.rule.axis);
  const Rows rows{view.positions(), view.classes, view.inner};
  ForRows(ctx, rows,
          SoftLabelGradientRow{rows,
                               DivisorOf(op.hard.rule, view),
                               op.FactorsOf(view),
                               InputNumbers(ctx, 0),
                               InputNumbers(ctx, 2),
                               OutputNumbers(ctx, 0),
                               {InputNumbers(ctx, 1), InputNumbers(ctx, 3)}});
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::SoftLabelLoss, "soft-label-loss",
                              KernelRank::kReference, MakeSoftLabelLoss);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::SoftLabelLossGrad, SoftLabelLossGrad);

}  // namespace
}  // namespace caffe::cuda
