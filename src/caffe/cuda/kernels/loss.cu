#include <cfloat>

#include "caffe/cuda/kernels/sum_loss.cuh"
#include "caffe/ops/loss.hpp"

namespace caffe::cuda {
namespace {

struct AddLogLoss {
  ops::LabelRule rule;
  ClassView view;
  ops::Focus focus;
  Numbers p, labels, weights;

  __device__ void operator()(int64_t, int64_t position, Sums<2, double>& sums) const {
    const int64_t label = LabelAt(labels, position);
    if (IsIgnored(rule.ignore_label, label)) return;
    sums.values[0] += IsClass(label, view.classes)
                          ? weights.GetOr<double>(label, 1) * TermOf(view.At(position, label))
                          : static_cast<double>(NAN);
    sums.values[1] += 1;
  }
  __device__ double TermOf(int64_t i) const {
    return focus.Loss(std::max<double>(p.Get<double>(i), FLT_MIN));
  }
};

KernelOrRefusal MakeSoftmaxLoss(const ops::SoftmaxLoss& op, const KernelRequest& request) {
  const ClassView view(request.inputs[0].shape, op.rule.axis);
  const Covered positions = Everything(view.positions());
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  SumCovered<2, double>(
                      ctx, positions, ctx.workspace,
                      AddLogLoss{op.rule, view, op.focus, InputNumbers(ctx, 0),
                                 InputNumbers(ctx, 1), InputNumbers(ctx, 2)},
                      StoreLabelledMean{op.rule, view.outer, view.inner, OutputNumbers(ctx, 0)});
                },
                SumWorkspace<2, double>(positions)};
}

template <typename T>
struct SoftmaxLossGradient {
  using A = Accum<T>;
  ops::LabelRule rule;
  ClassView view;
  GradientFactor factor;
  ops::Focus focus;
  A target, others;
  Numbers p, labels, weights;
  T* dx;

  __device__ void operator()(int64_t i) const {
    int64_t within, c;
    const int64_t outer = Divide(Divide(i, view.inner, &within), view.classes, &c);
    const int64_t label = LabelAt(labels, outer * view.inner + within);
    if (IsIgnored(rule.ignore_label, label)) {
      dx[i] = T(A(0));
    } else if (!IsClass(label, view.classes)) {
      dx[i] = T(static_cast<A>(NAN));
    } else {
      const double slope = factor() * weights.GetOr<double>(label, 1) *
                           SlopeAt(view.At(outer * view.inner + within, label));
      dx[i] = T((p.Get<A>(i) - (c == label ? target : others)) * static_cast<A>(slope));
    }
  }
  __device__ double SlopeAt(int64_t i) const {
    if (focus.gamma == 0) return focus.alpha;
    return focus.Slope(std::max<double>(p.Get<double>(i), FLT_MIN));
  }
};

KernelOrRefusal MakeSoftmaxLossGrad(const ops::SoftmaxLossGrad& op, const KernelRequest& request) {
  const ClassView view(request.outputs[0].shape, op.rule.axis);
  const double target = op.target(), others = op.target_of_others(view.classes, view.inner);
  return Kernel{
      "",
      [=](const KernelContext& ctx) {
        const Numbers labels = InputNumbers(ctx, 1);
        const double* valid = CountValidInto(ctx, op.rule, labels, view.positions());
        const GradientFactor factor{op.rule, view.outer, view.inner, InputNumbers(ctx, 2), valid};
        VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
          ForEach(
              ctx, ctx.output(0).count(),
              SoftmaxLossGradient<T>{op.rule, view, factor, op.focus, static_cast<Accum<T>>(target),
                                     static_cast<Accum<T>>(others), InputNumbers(ctx, 0), labels,
                                     InputNumbers(ctx, 3), ctx.output(0).as<T>()});
        });
      },
      ValidWorkspace(view.positions())};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::SoftmaxLoss, "softmax-loss",
                              KernelRank::kReference, MakeSoftmaxLoss);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::SoftmaxLossGrad, "softmax-loss-grad",
                              KernelRank::kReference, MakeSoftmaxLossGrad);

}  // namespace
}  // namespace caffe::cuda
