#include "caffe/ops/loss.hpp"

#include <algorithm>
#include <cfloat>
#include <vector>

#include "caffe/cpu/kernels/labels.hpp"
#include "caffe/cpu/kernels/wide.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// The weight of a label's class; 1 if the operand is absent.
double WeightOf(const KernelContext& ctx, int input, int64_t label) {
  return ctx.has_input(input) ? ElementOf(ctx.input(input), label) : 1;
}

void SoftmaxLoss(const ops::SoftmaxLoss& op, const KernelContext& ctx) {
  const ClassView view(ctx.input(0).shape, op.rule.axis);
  double sum = 0;
  int64_t valid = 0;
  for (int64_t position = 0; position < view.positions(); ++position) {
    const int64_t label = LabelAt(ctx.input(1), position);
    if (IsIgnored(op.rule.ignore_label, label)) continue;
    RequireLabel(label, view.classes, position);
    const double probability =
        std::max<double>(ElementOf(ctx.input(0), view.At(position, label)), FLT_MIN);
    sum += WeightOf(ctx, 2, label) * op.focus.Loss(probability);
    ++valid;
  }
  if (!op.rule.ignore_label) valid = view.positions();
  SetElement(ctx.output(0), 0, sum / op.rule.Divisor(view.outer, view.inner, valid));
}

// Positions whose gradients are computed together: where the numbers of a class are next to each
// other, their loops run along the positions.
constexpr int64_t kTogether = 128;

// The numbers that the gradients of some positions take.
template <typename P>
struct Slopes {
  bool is_ignored[kTogether];
  P slope[kTogether];
  int32_t label[kTogether];  // -1: none of the classes
};

// Differences between probabilities and their targets times slopes, for `width` positions whose
// numbers for one class are next to each other; those of the next class are `step` further on.
template <typename P, typename T>
CAFFE_CPU_CLONES void SoftmaxLossGradColumns(const P* p, int64_t classes, int64_t step,
                                             int64_t width, const Slopes<P>& of, P target, P others,
                                             T* dx) {
  for (int64_t c = 0; c < classes; ++c) {
    const int32_t here = static_cast<int32_t>(c);
    for (int64_t k = 0; k < width; ++k) {
      const P wanted = of.label[k] == here ? target : others;
      const P slope = (p[c * step + k] - wanted) * of.slope[k];
      dx[c * step + k] = T(of.is_ignored[k] ? P(0) : slope);
    }
  }
}

template <typename P, typename T>
CAFFE_CPU_CLONES void SoftmaxLossGradRow(const P* p, int64_t classes, const Slopes<P>& of, P target,
                                         P others, T* dx) {
  if (of.is_ignored[0]) return void(std::fill_n(dx, classes, T(0.0F)));
  const P slope = of.slope[0];
  const int32_t label = of.label[0];
  const P at_label = label < 0 ? P(0) : p[label];  // dx may be p
  for (int64_t c = 0; c < classes; ++c) dx[c] = T((p[c] - others) * slope);
  if (label >= 0) dx[label] = T((at_label - target) * slope);
}

// A label out of range has neither probability nor weight; forward has thrown for it.
template <typename P>
double SlopeAt(const ops::SoftmaxLossGrad& op, const KernelContext& ctx, const P* p,
               const ClassView& view, int64_t label) {
  if (label < 0 || label >= view.classes) return op.focus.alpha;
  const double weight = WeightOf(ctx, 3, label);
  if (op.focus.gamma == 0) return weight * op.focus.alpha;
  return weight * op.focus.Slope(std::max<double>(p[label * view.inner], FLT_MIN));
}

void SoftmaxLossGrad(const ops::SoftmaxLossGrad& op, const KernelContext& ctx) {
  const ClassView view(ctx.output(0).shape, op.rule.axis);
  int64_t valid = 0;
  for (int64_t k = 0; k < view.positions(); ++k)
    valid += !IsIgnored(op.rule.ignore_label, LabelAt(ctx.input(1), k));
  const double factor = ElementOf(ctx.input(2), 0) / op.rule.Divisor(view.outer, view.inner, valid);
  const double target = op.target(), others = op.target_of_others(view.classes, view.inner);
  VisitWide(ctx.input(0).dtype, [&]<typename P>(TypeTag<P>) {
    VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
      const P* p = ctx.input(0).as<const P>();
      T* dx = ctx.output(0).as<T>();
      ParallelFor(view.positions(), 1, [&](int64_t begin, int64_t end) {
        Slopes<P> of;
        for (int64_t width = 0; begin < end; begin += width) {
          width = std::min(view.WidthFrom(begin, kTogether), end - begin);
          const int64_t at = view.At(begin, 0);
          for (int64_t k = 0; k < width; ++k) {
            const int64_t label = LabelAt(ctx.input(1), begin + k);
            of.label[k] = label >= 0 && label < view.classes ? static_cast<int32_t>(label) : -1;
            of.is_ignored[k] = IsIgnored(op.rule.ignore_label, label);
            of.slope[k] = of.is_ignored[k]
                              ? P(0)
                              : static_cast<P>(factor * SlopeAt(op, ctx, p + at + k, view, label));
          }
          const P wanted = static_cast<P>(target), unwanted = static_cast<P>(others);
          if (view.inner == 1) {
            SoftmaxLossGradRow(p + at, view.classes, of, wanted, unwanted, dx + at);
          } else {
            SoftmaxLossGradColumns(p + at, view.classes, view.inner, width, of, wanted, unwanted,
                                   dx + at);
          }
        }
      });
    });
  });
}

// How many other classes' scores beat the label's, for `width` positions whose scores for one class
// are next to each other; those of the next class are `step` further on.
template <typename T>
CAFFE_CPU_CLONES void CountBetter(const ops::Accuracy& op, const T* x, int64_t classes,
                                  int64_t step, int64_t width, const int32_t* labels,
                                  int32_t* better) {
  Accum<T> scores[kTogether];
  for (int64_t k = 0; k < width; ++k) {
    scores[k] = labels[k] < 0 ? Accum<T>(0) : static_cast<Accum<T>>(x[labels[k] * step + k]);
    better[k] = op.CanBeRight(scores[k]) ? 0 : op.top_k;
  }
  for (int64_t c = 0; c < classes; ++c) {
    const int32_t here = static_cast<int32_t>(c);
    for (int64_t k = 0; k < width; ++k) {
      const bool beats = op.Beats(static_cast<Accum<T>>(x[c * step + k]), scores[k]);
      better[k] += (labels[k] != here) & beats;
    }
  }
}

template <typename T>
CAFFE_CPU_CLONES int32_t CountBetterInRow(const ops::Accuracy& op, const T* x, int64_t classes,
                                          int32_t label) {
  const auto score = static_cast<Accum<T>>(x[label]);
  if (!op.CanBeRight(score)) return op.top_k;
  int32_t better = 0;
  for (int64_t c = 0; c < classes; ++c) better += op.Beats(static_cast<Accum<T>>(x[c]), score);
  return better - op.Beats(score, score);
}

void Accuracy(const ops::Accuracy& op, const KernelContext& ctx) {
  const ClassView view(ctx.input(0).shape, op.axis);
  int64_t valid = 0, right = 0;
  // Items are counted per class only on request; the number of classes is small.
  static thread_local std::vector<int64_t> class_sizes, class_right;
  if (ctx.has_output(1)) class_sizes.assign(view.classes, 0), class_right.assign(view.classes, 0);
  const auto count = [&](int32_t label, bool is_right) {
    right += is_right;
    ++valid;
    if (!ctx.has_output(1)) return;
    class_right[label] += is_right;
    ++class_sizes[label];
  };
  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    int32_t labels[kTogether], better[kTogether];
    int64_t width = 0;
    for (int64_t position = 0; position < view.positions(); position += width) {
      width = view.WidthFrom(position, kTogether);
      for (int64_t k = 0; k < width; ++k) {
        const int64_t label = LabelAt(ctx.input(1), position + k);
        const bool is_ignored = IsIgnored(op.ignore_label, label);
        if (!is_ignored) RequireLabel(label, view.classes, position + k);
        labels[k] = is_ignored ? -1 : static_cast<int32_t>(label);
      }
      const T* x = ctx.input(0).as<const T>() + view.At(position, 0);
      if (view.inner > 1) {
        CountBetter(op, x, view.classes, view.inner, width, labels, better);
      } else if (labels[0] >= 0) {
        better[0] = CountBetterInRow(op, x, view.classes, labels[0]);
      }
      for (int64_t k = 0; k < width; ++k)
        if (labels[k] >= 0) count(labels[k], better[k] < op.top_k);
    }
  });
  const auto store = [&](int output, int64_t i, int64_t right_ones, int64_t all) {
    SetElement(ctx.output(output), i,
               all == 0 ? 0 : static_cast<double>(right_ones) / static_cast<double>(all));
  };
  if (ctx.has_output(0)) store(0, 0, right, valid);
  for (int64_t c = 0; ctx.has_output(1) && c < view.classes; ++c)
    store(1, c, class_right[c], class_sizes[c]);
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SoftmaxLoss, SoftmaxLoss);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SoftmaxLossGrad, SoftmaxLossGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Accuracy, Accuracy);

}  // namespace
}  // namespace caffe::cpu
