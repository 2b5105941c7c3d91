#include "caffe/cuda/groups.cuh"
#include "caffe/cuda/kernels/sum_loss.cuh"
#include "caffe/ops/pair_losses.hpp"

namespace caffe::cuda {
namespace {

double Items(const TensorDesc& x) {
  return static_cast<double>(x.shape.LegacyExtent(0));
}

// w (a - b), the weight being optional.
template <typename T>
struct Difference {
  const T *a, *b, *w;

  Difference(const KernelContext& ctx, int weights)
      : a(ctx.input(0).as<const T>()),
        b(ctx.input(1).as<const T>()),
        w(ctx.has_input(weights) ? ctx.input(weights).as<const T>() : nullptr) {}

  __device__ double At(int64_t i) const {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    return w == nullptr ? d : d * static_cast<double>(w[i]);
  }
};
constexpr int kNoWeights = 99;  // an operand that no loss has

// sum += fn(d) over elements.
template <typename T, typename Fn>
struct AddOfDifference {
  Fn fn;
  Difference<T> difference;

  __device__ void operator()(int64_t, int64_t i, Sums<1, double>& sums) const {
    sums.values[0] += fn(difference.At(i));
  }
};

// dx = factor * dloss * fn(d).
template <typename T, typename Fn>
struct GradientOfDifference {
  Fn fn;
  Difference<T> difference;
  double factor;
  const T* dloss;
  T* dx;

  __device__ void operator()(int64_t i) const {
    dx[i] = static_cast<T>(factor * static_cast<double>(*dloss) * fn(difference.At(i)));
  }
};

template <typename Fn>
KernelOrRefusal MakeDifferenceLoss(const KernelRequest& request, int weights) {
  const Covered all = Everything(request.inputs[0].count());
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  VisitWide(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
                    SumCovered<1, double>(ctx, all, ctx.workspace,
                                          AddOfDifference<T, Fn>{{}, {ctx, weights}},
                                          StoreMean<T>{Items(ctx.input(0)), ctx.output(0).as<T>()});
                  });
                },
                SumWorkspace<1, double>(all)};
}

template <typename Fn>
void DifferenceGradient(const KernelContext& ctx, int sign, int weights) {
  VisitWide(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(ctx, ctx.output(0).count(),
            GradientOfDifference<T, Fn>{{},
                                        {ctx, weights},
                                        sign / Items(ctx.input(0)),
                                        ctx.input(2).as<const T>(),
                                        ctx.output(0).as<T>()});
  });
}

struct Magnitude {
  __device__ double operator()(double d) const { return std::abs(d); }
};
struct Sign {
  __device__ double operator()(double d) const { return d > 0 ? 1 : d < 0 ? -1 : 0; }
};
struct Huber {
  __device__ double operator()(double d) const {
    const double size = std::abs(d);
    return size < 1 ? size * size / 2 : size - 0.5;
  }
};
struct Limited {
  __device__ double operator()(double d) const { return d < -1 ? -1 : d > 1 ? 1 : d; }
};

KernelOrRefusal MakeL1Loss(const ops::L1Loss&, const KernelRequest& request) {
  return MakeDifferenceLoss<Magnitude>(request, kNoWeights);
}
void L1LossGrad(const ops::L1LossGrad& op, const KernelContext& ctx) {
  DifferenceGradient<Sign>(ctx, op.sign, kNoWeights);
}
KernelOrRefusal MakeSmoothL1Loss(const ops::SmoothL1Loss&, const KernelRequest& request) {
  return MakeDifferenceLoss<Huber>(request, 2);
}
void SmoothL1LossGrad(const ops::SmoothL1LossGrad& op, const KernelContext& ctx) {
  DifferenceGradient<Limited>(ctx, op.sign, 3);
}

template <typename T>
struct AddCrossEntropy {
  ops::LabelRule rule;
  const T *x, *t;

  __device__ void operator()(int64_t, int64_t i, Sums<2, double>& sums) const {
    if (IsIgnored(rule.ignore_label, LabelAt(t, i))) return;
    const double value = static_cast<double>(x[i]), target = static_cast<double>(t[i]);
    sums.values[0] +=
        std::log1p(std::exp(-std::abs(value))) - value * (target - (value >= 0 ? 1 : 0));
    sums.values[1] += 1;
  }
};

KernelOrRefusal MakeSigmoidCrossEntropyLoss(const ops::SigmoidCrossEntropyLoss& op,
                                            const KernelRequest& request) {
  const int64_t count = request.inputs[0].count(), outer = request.inputs[0].shape.LegacyExtent(0);
  const Covered all = Everything(count);
  return Kernel{
      "",
      [=](const KernelContext& ctx) {
        VisitWide(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
          SumCovered<2, double>(
              ctx, all, ctx.workspace,
              AddCrossEntropy<T>{op.rule, ctx.input(0).as<const T>(), ctx.input(1).as<const T>()},
              StoreLabelledMean<T>{op.rule, outer, count / std::max<int64_t>(outer, 1),
                                   ctx.output(0).as<T>()});
        });
      },
      SumWorkspace<2, double>(all)};
}

template <typename T>
struct CrossEntropyGradient {
  ops::LabelRule rule;
  GradientFactor<T> factor;
  const T *x, *t;
  T* dx;

  __device__ void operator()(int64_t i) const {
    const double value = static_cast<double>(x[i]), target = static_cast<double>(t[i]);
    dx[i] = IsIgnored(rule.ignore_label, LabelAt(t, i))
                ? T(0)
                : static_cast<T>(factor() * (0.5 * std::tanh(0.5 * value) + 0.5 - target));
  }
};

KernelOrRefusal MakeSigmoidCrossEntropyLossGrad(const ops::SigmoidCrossEntropyLossGrad& op,
                                                const KernelRequest& request) {
  const int64_t count = request.inputs[0].count(), outer = request.inputs[0].shape.LegacyExtent(0);
  return Kernel{
      "",
      [=](const KernelContext& ctx) {
        VisitWide(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
          const T* targets = ctx.input(1).as<const T>();
          const double* valid = CountValidInto(ctx, op.rule, targets, count);
          ForEach(ctx, count,
                  CrossEntropyGradient<T>{op.rule,
                                          {op.rule, outer, count / std::max<int64_t>(outer, 1),
                                           ctx.input(2).as<const T>(), valid},
                                          ctx.input(0).as<const T>(),
                                          targets,
                                          ctx.output(0).as<T>()});
        });
      },
      ValidWorkspace(count)};
}

// The term of one pair, as a row's loss (Store) or its gradient.
template <typename T>
struct ContrastivePair {
  double margin;
  bool legacy;
  const T* similar;

  __device__ bool IsSimilar(int64_t row) const { return LabelAt(similar, row) != 0; }
  __device__ double Loss(int64_t row, double squared) const {
    if (IsSimilar(row)) return squared;
    if (legacy) return std::max(margin - squared, 0.0);
    const double short_of = std::max(margin - std::sqrt(squared), 0.0);
    return short_of * short_of;
  }
  // d loss / d difference, over the difference.
  __device__ double Slope(int64_t row, double squared) const {
    if (IsSimilar(row)) return 1;
    const double distance = std::sqrt(squared);
    const double short_of = margin - (legacy ? squared : distance);
    return short_of <= 0 ? 0 : legacy ? -1 : -short_of / (distance + 1e-4);
  }
};

// The squared distance of row `row`'s operands, in each thread of the group.
template <typename T, typename Group>
__device__ double SquaredDistance(const Difference<T>& difference, int64_t row, int64_t width,
                                  const Group& group) {
  double sum = 0;
  for (int64_t i = group.rank(); i < width; i += group.size()) {
    const double d = difference.At(row * width + i);
    sum += d * d;
  }
  return group.Reduce(Sum{}, sum);
}

template <typename T>
struct ContrastiveRow {
  ContrastivePair<T> pair;
  Difference<T> difference;
  int64_t width;
  double* losses;

  template <typename Group>
  __device__ void operator()(int64_t row, const Group& group) const {
    const double squared = SquaredDistance(difference, row, width, group);
    if (group.rank() == 0) losses[row] = pair.Loss(row, squared);
  }
};

struct AddNumber {
  const double* x;

  __device__ void operator()(int64_t, int64_t i, Sums<1, double>& sums) const {
    sums.values[0] += x[i];
  }
};

KernelOrRefusal MakeContrastiveLoss(const ops::ContrastiveLoss& op, const KernelRequest& request) {
  const int64_t rows = request.inputs[0].shape[0], width = request.inputs[0].shape.count(1);
  const Covered all = Everything(rows);
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  VisitWide(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
                    double* losses = static_cast<double*>(ctx.workspace);
                    ForRows(ctx, rows, width, 1,
                            ContrastiveRow<T>{{op.margin, op.legacy, ctx.input(2).as<const T>()},
                                              {ctx, kNoWeights},
                                              width,
                                              losses});
                    SumCovered<1, double>(
                        ctx, all, losses + rows, AddNumber{losses},
                        StoreMean<T>{2 * static_cast<double>(rows), ctx.output(0).as<T>()});
                  });
                },
                static_cast<size_t>(rows) * sizeof(double) + SumWorkspace<1, double>(all)};
}

template <typename T>
struct ContrastiveGradientRow {
  ContrastivePair<T> pair;
  Difference<T> difference;
  int64_t width;
  double factor;
  const T* dloss;
  T* dx;

  template <typename Group>
  __device__ void operator()(int64_t row, const Group& group) const {
    const double squared = SquaredDistance(difference, row, width, group);
    const double slope = factor * static_cast<double>(*dloss) * pair.Slope(row, squared);
    for (int64_t i = group.rank(); i < width; i += group.size()) {
      dx[row * width + i] = static_cast<T>(slope * difference.At(row * width + i));
    }
  }
};

void ContrastiveLossGrad(const ops::ContrastiveLossGrad& op, const KernelContext& ctx) {
  const int64_t rows = ctx.input(0).shape[0], width = ctx.input(0).shape.count(1);
  VisitWide(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForRows(ctx, rows, width, 1,
            ContrastiveGradientRow<T>{{op.margin, op.legacy, ctx.input(2).as<const T>()},
                                      {ctx, kNoWeights},
                                      width,
                                      op.sign / static_cast<double>(rows),
                                      ctx.input(3).as<const T>(),
                                      ctx.output(0).as<T>()});
  });
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::L1Loss, "l1-loss", KernelRank::kReference,
                              MakeL1Loss);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::L1LossGrad, L1LossGrad);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::SmoothL1Loss, "smooth-l1-loss",
                              KernelRank::kReference, MakeSmoothL1Loss);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::SmoothL1LossGrad, SmoothL1LossGrad);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::SigmoidCrossEntropyLoss,
                              "sigmoid-cross-entropy-loss", KernelRank::kReference,
                              MakeSigmoidCrossEntropyLoss);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::SigmoidCrossEntropyLossGrad,
                              "sigmoid-cross-entropy-loss-grad", KernelRank::kReference,
                              MakeSigmoidCrossEntropyLossGrad);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::ContrastiveLoss, "contrastive-loss",
                              KernelRank::kReference, MakeContrastiveLoss);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::ContrastiveLossGrad, ContrastiveLossGrad);

}  // namespace
}  // namespace caffe::cuda
