#include "caffe/cuda/kernels/sum_loss.cuh"
#include "caffe/ops/class_losses.hpp"

namespace caffe::cuda {
namespace {

constexpr double kLeastProbability = 1e-20;

// Rows of classes: all axes after the first together are the classes.
ClassView ClassRows(const Shape& shape) {
  return ClassView(Shape{shape[0], shape.count(1)}, 1);
}

// NaN stays NaN. (std::max takes references, and a host constant has no address on the device.)
__device__ double AtLeast(double probability) {
  return probability < kLeastProbability ? kLeastProbability : probability;
}

__device__ double LogOf(double probability) {
  return std::log(AtLeast(probability));
}

// Returns max(1 - s x, 0) and s for element i; NaN if x is NaN or the label is not a class.
struct Margins {
  int64_t classes;
  Numbers x, labels;

  explicit Margins(const KernelContext& ctx)
      : classes(ctx.input(0).shape.count(1)),
        x(InputNumbers(ctx, 0)),
        labels(InputNumbers(ctx, 1)) {}

  __device__ double At(int64_t i, double* sign) const {
    int64_t c;
    const int64_t label = LabelAt(labels, Divide(i, classes, &c));
    *sign = c == label ? 1 : -1;
    return IsClass(label, classes) ? std::max(1 - *sign * x.Get<double>(i), 0.0)
                                   : static_cast<double>(NAN);
  }
};

struct AddMargin {
  Margins margins;
  bool squared;

  __device__ void operator()(int64_t, int64_t i, Sums<1, double>& sums) const {
    double sign;
    const double margin = margins.At(i, &sign);
    sums.values[0] += squared ? margin * margin : margin;
  }
};

KernelOrRefusal MakeHingeLoss(const ops::HingeLoss& op, const KernelRequest& request) {
  const Covered all = Everything(request.inputs[0].count());
  const double items = static_cast<double>(request.inputs[0].shape[0]);
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  SumCovered<1, double>(ctx, all, ctx.workspace,
                                        AddMargin{Margins(ctx), op.squared},
                                        StoreMean{items, OutputNumbers(ctx, 0)});
                },
                SumWorkspace<1, double>(all)};
}

struct HingeGradient {
  Margins margins;
  bool squared;
  double items;
  Numbers dloss, dx;

  __device__ void operator()(int64_t i) const {
    double sign;
    const double margin = margins.At(i, &sign);
    const double slope = squared || margin != margin ? 2 * margin : margin > 0 ? 1 : 0;
    dx.Set(i, -sign * slope * dloss.Get<double>(0) / items);
  }
};

void HingeLossGrad(const ops::HingeLossGrad& op, const KernelContext& ctx) {
  ForEach(ctx, ctx.output(0).count(),
          HingeGradient{Margins(ctx), op.squared, static_cast<double>(ctx.input(0).shape[0]),
                        InputNumbers(ctx, 2), OutputNumbers(ctx, 0)});
}

struct AddLogProbability {
  int64_t classes;
  Numbers p, labels;

  __device__ void operator()(int64_t, int64_t n, Sums<1, double>& sums) const {
    const int64_t label = LabelAt(labels, n);
    sums.values[0] -= IsClass(label, classes) ? LogOf(p.Get<double>(n * classes + label))
                                              : static_cast<double>(NAN);
  }
};

KernelOrRefusal MakeMultinomialLogisticLoss(const ops::MultinomialLogisticLoss&,
                                            const KernelRequest& request) {
  const ClassView view = ClassRows(request.inputs[0].shape);
  const Covered items = Everything(view.outer);
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  SumCovered<1, double>(
                      ctx, items, ctx.workspace,
                      AddLogProbability{view.classes, InputNumbers(ctx, 0), InputNumbers(ctx, 1)},
                      StoreMean{static_cast<double>(view.outer), OutputNumbers(ctx, 0)});
                },
                SumWorkspace<1, double>(items)};
}

struct LogProbabilityGradient {
  int64_t classes;
  double items;
  Numbers p, labels, dloss, dp;

  __device__ double Slope(int64_t i) const {
    int64_t c;
    const int64_t label = LabelAt(labels, Divide(i, classes, &c));
    if (c != label) return IsClass(label, classes) ? 0 : static_cast<double>(NAN);
    return -dloss.Get<double>(0) / items / AtLeast(p.Get<double>(i));
  }
  __device__ void operator()(int64_t i) const { dp.Set(i, Slope(i)); }
};

void MultinomialLogisticLossGrad(const ops::MultinomialLogisticLossGrad&,
                                 const KernelContext& ctx) {
  const ClassView view = ClassRows(ctx.input(0).shape);
  ForEach(
      ctx, ctx.output(0).count(),
      LogProbabilityGradient{view.classes, static_cast<double>(view.outer), InputNumbers(ctx, 0),
                             InputNumbers(ctx, 1), InputNumbers(ctx, 2), OutputNumbers(ctx, 0)});
}

struct AddInfogain {
  ops::LabelRule rule;
  ClassView view;
  Numbers p, labels, h;

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
          h.Get<double>(label * view.classes + c) * LogOf(p.Get<double>(view.At(position, c)));
    }
  }
};

KernelOrRefusal MakeInfogainLoss(const ops::InfogainLoss& op, const KernelRequest& request) {
  const ClassView view(request.inputs[0].shape, op.rule.axis);
  const Covered positions = Everything(view.positions());
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  SumCovered<2, double>(
                      ctx, positions, ctx.workspace,
                      AddInfogain{op.rule, view, InputNumbers(ctx, 0), InputNumbers(ctx, 1),
                                  InputNumbers(ctx, 2)},
                      StoreLabelledMean{op.rule, view.outer, view.inner, OutputNumbers(ctx, 0)});
                },
                SumWorkspace<2, double>(positions)};
}

struct InfogainGradient {
  ops::LabelRule rule;
  ClassView view;
  GradientFactor factor;
  Numbers p, labels, h, dx;

  __device__ void operator()(int64_t position) const {
    const int64_t label = LabelAt(labels, position);
    const bool ignored = IsIgnored(rule.ignore_label, label);
    const bool is_class = IsClass(label, view.classes);
    double row_sum = 0;
    for (int64_t c = 0; is_class && !ignored && c < view.classes; ++c)
      row_sum += h.Get<double>(label * view.classes + c);
    const double scale = factor();
    for (int64_t c = 0; c < view.classes; ++c) {
      const int64_t at = view.At(position, c);
      if (ignored || !is_class) {
        dx.Set(at, ignored ? 0 : static_cast<double>(NAN));
      } else {
        const double wanted = h.Get<double>(label * view.classes + c);
        dx.Set(at, scale * (p.Get<double>(at) * row_sum - wanted));
      }
    }
  }
};

KernelOrRefusal MakeInfogainLossGrad(const ops::InfogainLossGrad& op,
                                     const KernelRequest& request) {
  const ClassView view(request.outputs[0].shape, op.rule.axis);
  return Kernel{
      "",
      [=](const KernelContext& ctx) {
        const Numbers labels = InputNumbers(ctx, 1);
        const double* valid = CountValidInto(ctx, op.rule, labels, view.positions());
        ForEach(ctx, view.positions(),
                InfogainGradient{op.rule,
                                 view,
                                 {op.rule, view.outer, view.inner, InputNumbers(ctx, 3), valid},
                                 InputNumbers(ctx, 0),
                                 labels,
                                 InputNumbers(ctx, 2),
                                 OutputNumbers(ctx, 0)});
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
