#include "caffe/cuda/groups.cuh"
#include "caffe/cuda/kernels/sum_loss.cuh"
#include "caffe/ops/pair_losses.hpp"

namespace caffe::cuda {
namespace {

double Items(const TensorDesc& x) {
  return static_cast<double>(x.shape.LegacyExtent(0));
}

// w (a - b); the weight w is optional.
struct Difference {
  Numbers a, b, w;

  Difference(const KernelContext& ctx, int weights)
      : a(InputNumbers(ctx, 0)), b(InputNumbers(ctx, 1)), w(InputNumbers(ctx, weights)) {}

  __device__ double At(int64_t i) const {
    return (a.Get<double>(i) - b.Get<double>(i)) * w.GetOr<double>(i, 1);
  }
};
constexpr int kNoWeights = 99;  // index of an operand that no loss has

// Adds fn(d) over all elements.
template <typename Fn>
struct AddOfDifference {
  Fn fn;
  Difference difference;

  __device__ void operator()(int64_t, int64_t i, Sums<1, double>& sums) const {
    sums.values[0] += fn(difference.At(i));
  }
};

// dx = factor * dloss * fn(d).
template <typename Fn>
struct GradientOfDifference {
  Fn fn;
  Difference difference;
  double factor;
  Numbers dloss, dx;

  __device__ void operator()(int64_t i) const {
    dx.Set(i, factor * dloss.Get<double>(0) * fn(difference.At(i)));
  }
};

// loss = sum of fn(d) / divisor.
template <typename Fn>
KernelOrRefusal MakeDifferenceLoss(const KernelRequest& request, int weights, double divisor) {
  const Covered all = Everything(request.inputs[0].count());
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  SumCovered<1, double>(ctx, all, ctx.workspace,
                                        AddOfDifference<Fn>{{}, {ctx, weights}},
                                        StoreMean{divisor, OutputNumbers(ctx, 0)});
                },
                SumWorkspace<1, double>(all)};
}

template <typename Fn>
void DifferenceGradient(const KernelContext& ctx, int sign, int weights) {
  ForEach(ctx, ctx.output(0).count(),
          GradientOfDifference<Fn>{{},
                                   {ctx, weights},
                                   sign / Items(ctx.input(0)),
                                   InputNumbers(ctx, 2),
                                   OutputNumbers(ctx, 0)});
}

struct Square {
  __device__ double operator()(double d) const { return d * d; }
};
struct PlainDifference {
  __device__ double operator()(double d) const { return d; }
};
struct Magnitude {
  __device__ double operator()(double d) const { return std::abs(d); }
};
struct Sign {
  __device__ double operator()(double d) const { return d > 0 ? 1 : d < 0 ? -1 : 0; }
};

KernelOrRefusal MakeEuclideanLoss(const ops::EuclideanLoss&, const KernelRequest& request) {
  return MakeDifferenceLoss<Square>(request, kNoWeights, 2 * Items(request.inputs[0]));
}
void EuclideanLossGrad(const ops::EuclideanLossGrad& op, const KernelContext& ctx) {
  DifferenceGradient<PlainDifference>(ctx, op.sign, kNoWeights);
}
KernelOrRefusal MakeL1Loss(const ops::L1Loss&, const KernelRequest& request) {
  return MakeDifferenceLoss<Magnitude>(request, kNoWeights, Items(request.inputs[0]));
}
void L1LossGrad(const ops::L1LossGrad& op, const KernelContext& ctx) {
  DifferenceGradient<Sign>(ctx, op.sign, kNoWeights);
}
// The weights are optional.
struct AddSmoothL1 {
  ops::SmoothL1Loss op;
  Difference difference;
  Numbers weights;

  __device__ void operator()(int64_t, int64_t i, Sums<1, double>& sums) const {
    sums.values[0] += weights.GetOr<double>(i, 1) * op.Of(difference.At(i));
  }
};

KernelOrRefusal MakeSmoothL1Loss(const ops::SmoothL1Loss& op, const KernelRequest& request) {
  const Covered all = Everything(request.inputs[0].count());
  const double divisor = op.divisor.value_or(Items(request.inputs[0]));
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  SumCovered<1, double>(ctx, all, ctx.workspace,
                                        AddSmoothL1{op, {ctx, 2}, InputNumbers(ctx, 3)},
                                        StoreMean{divisor, OutputNumbers(ctx, 0)});
                },
                SumWorkspace<1, double>(all)};
}

struct SmoothL1Gradient {
  ops::SmoothL1LossGrad op;
  Difference difference;
  Numbers weights, dloss, dx;
  double factor;

  __device__ void operator()(int64_t i) const {
    dx.Set(i, factor * dloss.Get<double>(0) * weights.GetOr<double>(i, 1) *
                  op.Of(difference.At(i), difference.w.GetOr<double>(i, 1)));
  }
};

void SmoothL1LossGrad(const ops::SmoothL1LossGrad& op, const KernelContext& ctx) {
  ForEach(ctx, ctx.output(0).count(),
          SmoothL1Gradient{op,
                           {ctx, 3},
                           InputNumbers(ctx, 4),
                           InputNumbers(ctx, 2),
                           OutputNumbers(ctx, 0),
                           op.sign / op.divisor.value_or(Items(ctx.input(0)))});
}

struct AddCrossEntropy {
  ops::LabelRule rule;
  ops::SigmoidCrossEntropy cross_entropy;
  Numbers x, t;

  __device__ void operator()(int64_t, int64_t i, Sums<2, double>& sums) const {
    if (IsIgnored(rule.ignore_label, LabelAt(t, i))) return;
    sums.values[0] += cross_entropy.Of(x.Get<double>(i), t.Get<double>(i));
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
        SumCovered<2, double>(
            ctx, all, ctx.workspace,
            AddCrossEntropy{op.rule, op.cross_entropy, InputNumbers(ctx, 0), InputNumbers(ctx, 1)},
            StoreLabelledMean{op.rule, outer, count / std::max<int64_t>(outer, 1),
                              OutputNumbers(ctx, 0)});
      },
      SumWorkspace<2, double>(all)};
}

struct CrossEntropyGradient {
  ops::LabelRule rule;
  ops::SigmoidCrossEntropy cross_entropy;
  GradientFactor factor;
  Numbers x, t, dx;

  __device__ void operator()(int64_t i) const {
    dx.Set(i, IsIgnored(rule.ignore_label, LabelAt(t, i))
                  ? 0
                  : factor() * cross_entropy.Slope(x.Get<double>(i), t.Get<double>(i)));
  }
};

KernelOrRefusal MakeSigmoidCrossEntropyLossGrad(const ops::SigmoidCrossEntropyLossGrad& op,
                                                const KernelRequest& request) {
  const int64_t count = request.inputs[0].count(), outer = request.inputs[0].shape.LegacyExtent(0);
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  const Numbers targets = InputNumbers(ctx, 1);
                  const double* valid = CountValidInto(ctx, op.rule, targets, count);
                  ForEach(ctx, count,
                          CrossEntropyGradient{op.rule,
                                               op.cross_entropy,
                                               {op.rule, outer, count / std::max<int64_t>(outer, 1),
                                                InputNumbers(ctx, 2), valid},
                                               InputNumbers(ctx, 0),
                                               targets,
                                               OutputNumbers(ctx, 0)});
                },
                ValidWorkspace(count)};
}

// The loss of one pair: a row's term (Loss) and its gradient (Slope).
struct ContrastivePair {
  double margin;
  bool legacy;
  Numbers similar;

  __device__ bool IsSimilar(int64_t row) const { return LabelAt(similar, row) != 0; }
  __device__ double Loss(int64_t row, double squared) const {
    if (IsSimilar(row)) return squared;
    if (legacy) return std::max(margin - squared, 0.0);
    const double short_of = std::max(margin - std::sqrt(squared), 0.0);
    return short_of * short_of;
  }
  // The derivative of the loss with respect to the difference, divided by the difference.
  __device__ double Slope(int64_t row, double squared) const {
    if (IsSimilar(row)) return 1;
    const double distance = std::sqrt(squared);
    const double short_of = margin - (legacy ? squared : distance);
    return short_of <= 0 ? 0 : legacy ? -1 : -short_of / (distance + 1e-4);
  }
};

// The squared distance between the operands' rows `row`, returned to each thread of the group.
template <typename Group>
__device__ double SquaredDistance(const Difference& difference, int64_t row, int64_t width,
                                  const Group& group) {
  double sum = 0;
  for (int64_t i = group.rank(); i < width; i += group.size()) {
    const double d = difference.At(row * width + i);
    sum += d * d;
  }
  return group.Reduce(Sum{}, sum);
}

struct ContrastiveRow {
  ContrastivePair pair;
  Difference difference;
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
  return Kernel{
      "",
      [=](const KernelContext& ctx) {
        double* losses = static_cast<double*>(ctx.workspace);
        ForRows(
            ctx, rows, width, 1,
            ContrastiveRow{
                {op.margin, op.legacy, InputNumbers(ctx, 2)}, {ctx, kNoWeights}, width, losses});
        SumCovered<1, double>(ctx, all, losses + rows, AddNumber{losses},
                              StoreMean{2 * static_cast<double>(rows), OutputNumbers(ctx, 0)});
      },
      static_cast<size_t>(rows) * sizeof(double) + SumWorkspace<1, double>(all)};
}

struct ContrastiveGradientRow {
  ContrastivePair pair;
  Difference difference;
  int64_t width;
  double factor;
  Numbers dloss, dx;

  template <typename Group>
  __device__ void operator()(int64_t row, const Group& group) const {
    const double squared = SquaredDistance(difference, row, width, group);
    const double slope = factor * dloss.Get<double>(0) * pair.Slope(row, squared);
    for (int64_t i = group.rank(); i < width; i += group.size()) {
      dx.Set(row * width + i, slope * difference.At(row * width + i));
    }
  }
};

void ContrastiveLossGrad(const ops::ContrastiveLossGrad& op, const KernelContext& ctx) {
  const int64_t rows = ctx.input(0).shape[0], width = ctx.input(0).shape.count(1);
  ForRows(ctx, rows, width, 1,
          ContrastiveGradientRow{{op.margin, op.legacy, InputNumbers(ctx, 2)},
                                 {ctx, kNoWeights},
                                 width,
                                 op.sign / static_cast<double>(rows),
                                 InputNumbers(ctx, 3),
                                 OutputNumbers(ctx, 0)});
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::EuclideanLoss, "euclidean-loss",
                              KernelRank::kReference, MakeEuclideanLoss);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::EuclideanLossGrad, EuclideanLossGrad);
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
