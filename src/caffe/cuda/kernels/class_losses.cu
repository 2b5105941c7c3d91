#include "caffe/cuda/kernels/sum_loss.cuh"
#include "caffe/ops/class_losses.hpp"

namespace caffe::cuda {
namespace {

constexpr double kLeastProbability = 1e-20;

// Rows of classes, whatever the axes behind the first.
ClassView RowsOf(const Shape& shape) {
  return ClassView(Shape{shape[0], shape.count(1)}, 1);
}

// NaN stays NaN. (std::max takes references, which a constant of the host has none of here.)
__device__ double AtLeast(double probability) {
  return probability < kLeastProbability ? kLeastProbability : probability;
}

__device__ double LogOf(double probability) {
  return std::log(AtLeast(probability));
}

// max(1 - s x, 0) and s of element i; of a NaN, NaN.
template <typename T>
struct Margins {
  int64_t classes;
  const T *x, *labels;

  __device__ double At(int64_t i, double* sign) const {
    int64_t c;
    const int64_t label = LabelAt(labels, Divide(i, classes, &c));
    *sign = c == label ? 1 : -1;
    return IsClass(label, classes) ? std::max(1 - *sign * static_cast<double>(x[i]), 0.0)
                                   : static_cast<double>(NAN);
  }
};

template <typename T>
struct AddMargin {
  Margins<T> margins;
  bool squared;

  __device__ void operator()(int64_t, int64_t i, Sums<1, double>& sums) const {
    double sign;
    const double margin = margins.At(i, &sign);
    sums.values[0] += squared ? margin * margin : margin;
  }
};

template <typename T>
Margins<T> MarginsOf(const KernelContext& ctx) {
  return {ctx.input(0).shape.count(1), ctx.input(0).as<const T>(), ctx.input(1).as<const T>()};
}

KernelOrRefusal MakeHingeLoss(const ops::HingeLoss& op, const KernelRequest& request) {
  const Covered all = Everything(request.inputs[0].count());
  return Kernel{
      "",
      [=](const KernelContext& ctx) {
        VisitWide(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
          SumCovered<1, double>(
              ctx, all, ctx.workspace, AddMargin<T>{MarginsOf<T>(ctx), op.squared},
              StoreMean<T>{static_cast<double>(ctx.input(0).shape[0]), ctx.output(0).as<T>()});
        });
      },
      SumWorkspace<1, double>(all)};
}

template <typename T>
struct HingeGradient {
  Margins<T> margins;
  bool squared;
  const T* dloss;
  double items;
  T* dx;

  __device__ void operator()(int64_t i) const {
    double sign;
    const double margin = margins.At(i, &sign);
    const double slope = squared || margin != margin ? 2 * margin : margin > 0 ? 1 : 0;
    dx[i] = static_cast<T>(-sign * slope * static_cast<double>(*dloss) / items);
  }
};

void HingeLossGrad(const ops::HingeLossGrad& op, const KernelContext& ctx) {
  VisitWide(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(ctx, ctx.output(0).count(),
            HingeGradient<T>{MarginsOf<T>(ctx), op.squared, ctx.input(2).as<const T>(),
                             static_cast<double>(ctx.input(0).shape[0]), ctx.output(0).as<T>()});
  });
}

template <typename T>
struct AddLogProbability {
  int64_t classes;
  const T *p, *labels;

  __device__ void operator()(int64_t, int64_t n, Sums<1, double>& sums) const {
    const int64_t label = LabelAt(labels, n);
    sums.values[0] -=
        IsClass(label, classes) ? LogOf(p[n * classes + label]) : static_cast<double>(NAN);
  }
};

KernelOrRefusal MakeMultinomialLogisticLoss(const ops::MultinomialLogisticLoss&,
                                            const KernelRequest& request) {
  const ClassView view = RowsOf(request.inputs[0].shape);
  const Covered items = Everything(view.outer);
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  VisitWide(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
                    SumCovered<1, double>(
                        ctx, items, ctx.workspace,
                        AddLogProbability<T>{view.classes, ctx.input(0).as<const T>(),
                                             ctx.input(1).as<const T>()},
                        StoreMean<T>{static_cast<double>(view.outer), ctx.output(0).as<T>()});
                  });
                },
                SumWorkspace<1, double>(items)};
}

template <typename T>
struct LogProbabilityGradient {
  int64_t classes;
  double items;
  const T *p, *labels, *dloss;
  T* dp;

  __device__ void operator()(int64_t i) const {
    int64_t c;
    const int64_t label = LabelAt(labels, Divide(i, classes, &c));
    if (c == label) {
      const double probability = AtLeast(p[i]);
      dp[i] = static_cast<T>(-static_cast<double>(*dloss) / items / probability);
    } else {
      dp[i] = IsClass(label, classes) ? T(0) : static_cast<T>(NAN);
    }
  }
};

void MultinomialLogisticLossGrad(const ops::MultinomialLogisticLossGrad&,
                                 const KernelContext& ctx) {
  const ClassView view = RowsOf(ctx.input(0).shape);
  VisitWide(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(ctx, ctx.output(0).count(),
            LogProbabilityGradient<T>{view.classes, static_cast<double>(view.outer),
                                      ctx.input(0).as<const T>(), ctx.input(1).as<const T>(),
                                      ctx.input(2).as<const T>(), ctx.output(0).as<T>()});
  });
}

template <typename T>
struct AddInfogain {
  ops::LabelRule rule;
  ClassView view;
  const T *p, *labels, *h;

  __device__ void operator()(int64_t, int64_t position, Sums<2, double>& sums) const {
    const int64_t label = LabelAt(labels, position);
    if (IsIgnored(rule.ignore_label, label)) return;
    sums.values[1] += 1;
    if (!IsClass(label, view.classes)) {
      sums.values[0] = static_cast<double>(NAN);
      return;
    }
    for (int64_t c = 0; c < view.classes; ++c) {
      sums.values[0] -=
          static_cast<double>(h[label * view.classes + c]) * LogOf(p[view.At(position, c)]);
    }
  }
};

KernelOrRefusal MakeInfogainLoss(const ops::InfogainLoss& op, const KernelRequest& request) {
  const ClassView view(request.inputs[0].shape, op.rule.axis);
  const Covered positions = Everything(view.positions());
  return Kernel{
      "",
      [=](const KernelContext& ctx) {
        VisitWide(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
          SumCovered<2, double>(
              ctx, positions, ctx.workspace,
              AddInfogain<T>{op.rule, view, ctx.input(0).as<const T>(), ctx.input(1).as<const T>(),
                             ctx.input(2).as<const T>()},
              StoreLabelledMean<T>{op.rule, view.outer, view.inner, ctx.output(0).as<T>()});
        });
      },
      SumWorkspace<2, double>(positions)};
}

template <typename T>
struct InfogainGradient {
  ops::LabelRule rule;
  ClassView view;
  GradientFactor<T> factor;
  const T *p, *labels, *h;
  T* dx;

  __device__ void operator()(int64_t position) const {
    const int64_t label = LabelAt(labels, position);
    const bool ignored = IsIgnored(rule.ignore_label, label);
    const bool is_class = IsClass(label, view.classes);
    double row_sum = 0;
    for (int64_t c = 0; is_class && !ignored && c < view.classes; ++c) {
      row_sum += static_cast<double>(h[label * view.classes + c]);
    }
    const double scale = factor();
    for (int64_t c = 0; c < view.classes; ++c) {
      const int64_t at = view.At(position, c);
      dx[at] = ignored ? T(0)
               : !is_class
                   ? static_cast<T>(NAN)
                   : static_cast<T>(scale * (static_cast<double>(p[at]) * row_sum -
                                             static_cast<double>(h[label * view.classes + c])));
    }
  }
};

KernelOrRefusal MakeInfogainLossGrad(const ops::InfogainLossGrad& op,
                                     const KernelRequest& request) {
  const ClassView view(request.outputs[0].shape, op.rule.axis);
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  VisitWide(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
                    const T* labels = ctx.input(1).as<const T>();
                    const double* valid = CountValidInto(ctx, op.rule, labels, view.positions());
                    ForEach(ctx, view.positions(),
                            InfogainGradient<T>{op.rule,
                                                view,
                                                {op.rule, view.outer, view.inner,
                                                 ctx.input(3).as<const T>(), valid},
                                                ctx.input(0).as<const T>(),
                                                labels,
                                                ctx.input(2).as<const T>(),
                                                ctx.output(0).as<T>()});
                  });
                },
                ValidWorkspace(view.positions())};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::HingeLoss, "hinge-loss",
                              KernelRank::kReference, MakeHingeLoss);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::HingeLossGrad, HingeLossGrad);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::MultinomialLogisticLoss,
                              "multinomial-logistic-loss", KernelRank::kReference,
                              MakeMultinomialLogisticLoss);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::MultinomialLogisticLossGrad,
                      MultinomialLogisticLossGrad);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::InfogainLoss, "infogain-loss",
                              KernelRank::kReference, MakeInfogainLoss);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::InfogainLossGrad, "infogain-loss-grad",
                              KernelRank::kReference, MakeInfogainLossGrad);

}  // namespace
}  // namespace caffe::cuda
