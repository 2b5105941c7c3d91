#include "caffe/ops/loss.hpp"

#include <cfloat>
#include <cmath>
#include <vector>

#include "caffe/cpu/kernels/labels.hpp"
#include "caffe/cpu/kernels/wide.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

template <typename X, typename Y>
void SoftmaxRow(const X* x, int64_t classes, int64_t step, Y* y) {
  Y largest = static_cast<Y>(x[0]);
  for (int64_t c = 1; c < classes; ++c) largest = std::max(largest, static_cast<Y>(x[c * step]));
  Y sum = 0;
  for (int64_t c = 0; c < classes; ++c)
    sum += y[c * step] = std::exp(static_cast<Y>(x[c * step]) - largest);
  for (int64_t c = 0; c < classes; ++c) y[c * step] /= sum;
}

// Calls fn(offset of the position's first class) for each position, in parallel.
template <typename Fn>
void ForPositions(const ClassView& view, const Fn& fn) {
  ParallelFor(view.positions(), std::max<int64_t>(1, 4096 / view.classes),
              [&](int64_t begin, int64_t end) {
                for (int64_t p = begin; p < end; ++p) fn(view.At(p, 0));
              });
}

void Softmax(const ops::Softmax& op, const KernelContext& ctx) {
  const ClassView view(ctx.output(0).shape, op.axis);
  VisitFloat(ctx.input(0).dtype, [&]<typename X>(TypeTag<X>) {
    VisitWide(ctx.output(0).dtype, [&]<typename Y>(TypeTag<Y>) {
      ForPositions(view, [&](int64_t at) {
        SoftmaxRow(ctx.input(0).as<const X>() + at, view.classes, view.inner,
                   ctx.output(0).as<Y>() + at);
      });
    });
  });
}

// dx = y (dy - dot), where dot is the sum of y dy.
template <typename Y, typename DY, typename DX>
inline CAFFE_FORCE_INLINE void SoftmaxGradOf(const Y* y, const DY* dy, int64_t classes,
                                             int64_t step, DX* dx) {
  const auto at = [](const auto* x, int64_t i)
                      CAFFE_FORCE_INLINE { return static_cast<double>(x[i]); };
  constexpr int64_t kSums = 16;  // at once, because an addition waits for the one before
  double sums[kSums] = {}, dot = 0;
  int64_t c = 0;
  for (; c + kSums <= classes; c += kSums) {
    for (int64_t k = 0; k < kSums; ++k) sums[k] += at(y, (c + k) * step) * at(dy, (c + k) * step);
  }
  for (; c < classes; ++c) dot += at(y, c * step) * at(dy, c * step);
  for (const double sum : sums) dot += sum;
  for (int64_t i = 0; i < classes; ++i)
    dx[i * step] = DX(at(y, i * step) * (at(dy, i * step) - dot));
}

template <typename Y, typename DY, typename DX>
CAFFE_CPU_CLONES void SoftmaxGradRow(const Y* y, const DY* dy, int64_t classes, int64_t step,
                                     DX* dx) {
  step == 1 ? SoftmaxGradOf(y, dy, classes, 1, dx) : SoftmaxGradOf(y, dy, classes, step, dx);
}

void SoftmaxGrad(const ops::SoftmaxGrad& op, const KernelContext& ctx) {
  const ClassView view(ctx.output(0).shape, op.axis);
  VisitWide(ctx.input(0).dtype, [&]<typename Y>(TypeTag<Y>) {
    VisitFloat(ctx.input(1).dtype, [&]<typename DY>(TypeTag<DY>) {
      VisitFloat(ctx.output(0).dtype, [&]<typename DX>(TypeTag<DX>) {
        ForPositions(view, [&](int64_t at) {
          SoftmaxGradRow(ctx.input(0).as<const Y>() + at, ctx.input(1).as<const DY>() + at,
                         view.classes, view.inner, ctx.output(0).as<DX>() + at);
        });
      });
    });
  });
}

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

// Differences between a position's probabilities and their targets, times `factor`.
template <typename P, typename T>
void SoftmaxLossGradRow(const P* p, const ClassView& view, int64_t label, P target, P others,
                        P factor, T* dx) {
  for (int64_t c = 0; c < view.classes; ++c) {
    const P wanted = c == label ? target : others;
    dx[c * view.inner] = T((p[c * view.inner] - wanted) * factor);
  }
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
      ParallelFor(view.positions(), 1, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) {
          const int64_t label = LabelAt(ctx.input(1), k), at = view.At(k, 0);
          const P* p = ctx.input(0).as<const P>() + at;
          T* dx = ctx.output(0).as<T>() + at;
          if (IsIgnored(op.rule.ignore_label, label)) {
            for (int64_t c = 0; c < view.classes; ++c) dx[c * view.inner] = T(0.0f);
          } else {
            const double slope = SlopeAt(op, ctx, p, view, label);
            SoftmaxLossGradRow(p, view, label, static_cast<P>(target), static_cast<P>(others),
                               static_cast<P>(factor * slope), dx);
          }
        }
      });
    });
  });
}

// True if the label is among the top_k scores; scores are `step` elements apart.
template <typename T>
bool IsRight(const ops::Accuracy& op, const T* x, int64_t label, int64_t classes, int64_t step) {
  const auto score = static_cast<Accum<T>>(x[label * step]);
  if (!op.CanBeRight(score)) return false;
  int64_t better = 0;
  for (int64_t c = 0; c < classes; ++c)
    better += c != label && op.Beats(static_cast<Accum<T>>(x[c * step]), score);
  return better < op.top_k;
}

void Accuracy(const ops::Accuracy& op, const KernelContext& ctx) {
  const ClassView view(ctx.input(0).shape, op.axis);
  int64_t valid = 0, right = 0;
  // Items are counted per class only on request; the number of classes is small.
  static thread_local std::vector<int64_t> class_sizes, class_right;
  if (ctx.has_output(1)) class_sizes.assign(view.classes, 0), class_right.assign(view.classes, 0);
  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    for (int64_t position = 0; position < view.positions(); ++position) {
      const int64_t label = LabelAt(ctx.input(1), position);
      if (IsIgnored(op.ignore_label, label)) continue;
      RequireLabel(label, view.classes, position);
      const T* x = ctx.input(0).as<const T>() + view.At(position, 0);
      const bool is_right = IsRight(op, x, label, view.classes, view.inner);
      right += is_right;
      ++valid;
      if (!ctx.has_output(1)) continue;
      class_right[label] += is_right;
      ++class_sizes[label];
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

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Softmax, Softmax);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SoftmaxGrad, SoftmaxGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SoftmaxLoss, SoftmaxLoss);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SoftmaxLossGrad, SoftmaxLossGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Accuracy, Accuracy);

}  // namespace
}  // namespace caffe::cpu
