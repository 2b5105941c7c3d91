#include <cfloat>

#include "caffe/cuda/kernels/sum_loss.cuh"
#include "caffe/ops/loss.hpp"

namespace caffe::cuda {
namespace {

template <typename T>
struct AddLogLoss {
  ops::LabelRule rule;
  ClassView view;
  const T *p, *labels;

  __device__ void operator()(int64_t, int64_t position, Sums<2, double>& sums) const {
    const int64_t label = LabelAt(labels, position);
    if (IsIgnored(rule.ignore_label, label)) return;
    sums.values[0] -= IsClass(label, view.classes)
                          ? std::log(std::max<double>(p[view.At(position, label)], FLT_MIN))
                          : static_cast<double>(NAN);
    sums.values[1] += 1;
  }
};

KernelOrRefusal MakeSoftmaxLoss(const ops::SoftmaxLoss& op, const KernelRequest& request) {
  const ClassView view(request.inputs[0].shape, op.rule.axis);
  const Covered positions = Everything(view.positions());
  return Kernel{
      "",
      [=](const KernelContext& ctx) {
        VisitWide(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
          SumCovered<2, double>(
              ctx, positions, ctx.workspace,
              AddLogLoss<T>{op.rule, view, ctx.input(0).as<const T>(), ctx.input(1).as<const T>()},
              StoreLabelledMean<T>{op.rule, view.outer, view.inner, ctx.output(0).as<T>()});
        });
      },
      SumWorkspace<2, double>(positions)};
}

template <typename T>
struct SoftmaxLossGradient {
  ops::LabelRule rule;
  ClassView view;
  GradientFactor<T> factor;
  T target, others;
  const T *p, *labels;
  T* dx;

  __device__ void operator()(int64_t i) const {
    int64_t within, c;
    const int64_t outer = Divide(Divide(i, view.inner, &within), view.classes, &c);
    const int64_t label = LabelAt(labels, outer * view.inner + within);
    if (IsIgnored(rule.ignore_label, label)) {
      dx[i] = T(0);
    } else if (!IsClass(label, view.classes)) {
      dx[i] = static_cast<T>(NAN);
    } else {
      dx[i] = (p[i] - (c == label ? target : others)) * static_cast<T>(factor());
    }
  }
};

KernelOrRefusal MakeSoftmaxLossGrad(const ops::SoftmaxLossGrad& op, const KernelRequest& request) {
  const ClassView view(request.outputs[0].shape, op.rule.axis);
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  VisitWide(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
                    const T* labels = ctx.input(1).as<const T>();
                    const double* valid = CountValidInto(ctx, op.rule, labels, view.positions());
                    const T target = static_cast<T>(op.target());
                    const T others = static_cast<T>(op.target_of_others(view.classes, view.inner));
                    ForEach(ctx, ctx.output(0).count(),
                            SoftmaxLossGradient<T>{op.rule,
                                                   view,
                                                   {op.rule, view.outer, view.inner,
                                                    ctx.input(2).as<const T>(), valid},
                                                   target,
                                                   others,
                                                   ctx.input(0).as<const T>(),
                                                   labels,
                                                   ctx.output(0).as<T>()});
                  });
                },
                ValidWorkspace(view.positions())};
}

template <typename T>
struct AddSquaredDifference {
  const T *a, *b;

  __device__ void operator()(int64_t, int64_t i, Sums<1, double>& sums) const {
    const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sums.values[0] += difference * difference;
  }
};

KernelOrRefusal MakeEuclideanLoss(const ops::EuclideanLoss&, const KernelRequest& request) {
  const Covered all = Everything(request.inputs[0].count());
  const double divisor = 2 * static_cast<double>(request.inputs[0].shape.LegacyExtent(0));
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  VisitWide(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
                    SumCovered<1, double>(ctx, all, ctx.workspace,
                                          AddSquaredDifference<T>{ctx.input(0).as<const T>(),
                                                                  ctx.input(1).as<const T>()},
                                          StoreMean<T>{divisor, ctx.output(0).as<T>()});
                  });
                },
                SumWorkspace<1, double>(all)};
}

template <typename T>
struct ScaledDifference {
  const T* dloss;
  T factor;

  __device__ T operator()(T a, T b) const { return *dloss * factor * (a - b); }
};

void EuclideanLossGrad(const ops::EuclideanLossGrad& op, const KernelContext& ctx) {
  VisitWide(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    const T factor = static_cast<T>(op.sign) / static_cast<T>(ctx.input(0).shape.LegacyExtent(0));
    Map(ctx, ScaledDifference<T>{ctx.input(2).as<const T>(), factor}, ctx.output(0).count(),
        ctx.output(0).as<T>(), ctx.input(0).as<const T>(), ctx.input(1).as<const T>());
  });
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::SoftmaxLoss, "softmax-loss",
                              KernelRank::kReference, MakeSoftmaxLoss);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::SoftmaxLossGrad, "softmax-loss-grad",
                              KernelRank::kReference, MakeSoftmaxLossGrad);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::EuclideanLoss, "euclidean-loss",
                              KernelRank::kReference, MakeEuclideanLoss);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::EuclideanLossGrad, EuclideanLossGrad);

}  // namespace
}  // namespace caffe::cuda
