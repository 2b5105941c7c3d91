#include <algorithm>
#include <cmath>
#include <limits>

#include "caffe/cpu/kernels/fast_math.hpp"
#include "caffe/cpu/kernels/wide.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/ops/loss.hpp"

namespace caffe::cpu {
namespace {

// Sums are of so many parts, because an addition waits for the one before.
constexpr int64_t kParts = 16;
// Positions that are computed together where the numbers of a class are next to each other.
constexpr int64_t kTogether = 128;

inline CAFFE_FORCE_INLINE float ExpOf(float x) {
  return FastExp(x);
}
inline CAFFE_FORCE_INLINE double ExpOf(double x) {
  return std::exp(x);
}

template <typename T>
inline CAFFE_FORCE_INLINE T Larger(T a, T b) {
  return a < b ? b : a;
}

// The scores of one position are next to each other.
template <typename X, typename Y>
CAFFE_CPU_CLONES void SoftmaxRow(const X* x, int64_t classes, Y* y) {
  const int64_t whole = classes / kParts * kParts, rest = classes - whole;
  Y parts[kParts];
  std::fill_n(parts, kParts, static_cast<Y>(x[0]));
  for (int64_t c = 0; c < whole; c += kParts) {
    for (int64_t k = 0; k < kParts; ++k) parts[k] = Larger(parts[k], static_cast<Y>(x[c + k]));
  }
  Y largest = parts[0];
  for (int64_t k = 1; k < kParts; ++k) largest = Larger(largest, parts[k]);
  for (int64_t c = whole; c < classes; ++c) largest = Larger(largest, static_cast<Y>(x[c]));

  std::fill_n(parts, kParts, Y(0));
  for (int64_t c = 0; c < whole; c += kParts) {
    for (int64_t k = 0; k < kParts; ++k)
      parts[k] += y[c + k] = ExpOf(static_cast<Y>(x[c + k]) - largest);
  }
  Y last[kParts];
  std::fill_n(last, kParts, -std::numeric_limits<Y>::infinity());
  for (int64_t k = 0; k < rest; ++k) last[k] = static_cast<Y>(x[whole + k]) - largest;
  for (int64_t k = 0; k < kParts; ++k) parts[k] += last[k] = ExpOf(last[k]);
  std::copy_n(last, rest, y + whole);

  Y sum = 0;
  for (const Y part : parts) sum += part;
  for (int64_t c = 0; c < classes; ++c) y[c] /= sum;
}

// The scores of `width` positions, at most kTogether, for one class are next to each other; those
// of the next class are `step` further on.
template <typename X, typename Y>
CAFFE_CPU_CLONES void SoftmaxColumns(const X* x, int64_t classes, int64_t step, int64_t width,
                                     Y* y) {
  Y largest[kTogether], sums[kTogether] = {};
  for (int64_t p = 0; p < width; ++p) largest[p] = static_cast<Y>(x[p]);
  for (int64_t c = 1; c < classes; ++c) {
    for (int64_t p = 0; p < width; ++p)
      largest[p] = Larger(largest[p], static_cast<Y>(x[c * step + p]));
  }
  for (int64_t c = 0; c < classes; ++c) {
    for (int64_t p = 0; p < width; ++p)
      sums[p] += y[c * step + p] = ExpOf(static_cast<Y>(x[c * step + p]) - largest[p]);
  }
  for (int64_t c = 0; c < classes; ++c) {
    for (int64_t p = 0; p < width; ++p) y[c * step + p] /= sums[p];
  }
}

// Rows of few classes are turned into columns, because vectors would stay half empty.
constexpr int64_t kFewClasses = 64;
constexpr int64_t kRows = 16;

template <typename X, typename Y>
CAFFE_CPU_CLONES void SoftmaxShortRows(const X* x, int64_t classes, Y* y) {
  Y columns[kFewClasses * kRows] = {};
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t c = 0; c < classes; ++c)
      columns[c * kRows + row] = static_cast<Y>(x[row * classes + c]);
  }
  SoftmaxColumns(columns, classes, kRows, kRows, columns);
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t c = 0; c < classes; ++c) y[row * classes + c] = columns[c * kRows + row];
  }
}

// Computes `count` rows that follow one another.
template <typename X, typename Y>
void SoftmaxRows(const X* x, int64_t classes, int64_t count, Y* y) {
  while (count > 0) {
    const int64_t rows = classes <= kFewClasses && count >= kRows ? kRows : 1;
    rows == 1 ? SoftmaxRow(x, classes, y) : SoftmaxShortRows(x, classes, y);
    x += rows * classes;
    y += rows * classes;
    count -= rows;
  }
}

// dx = y (dy - dot), where dot is the sum of y dy.
template <typename Y, typename DY, typename DX>
CAFFE_CPU_CLONES void SoftmaxGradRow(const Y* y, const DY* dy, int64_t classes, DX* dx) {
  const auto at = [](const auto* x, int64_t i)
                      CAFFE_FORCE_INLINE { return static_cast<double>(x[i]); };
  double parts[kParts] = {}, dot = 0;
  int64_t c = 0;
  for (; c + kParts <= classes; c += kParts) {
    for (int64_t k = 0; k < kParts; ++k) parts[k] += at(y, c + k) * at(dy, c + k);
  }
  for (; c < classes; ++c) dot += at(y, c) * at(dy, c);
  for (const double part : parts) dot += part;
  for (int64_t i = 0; i < classes; ++i) dx[i] = DX(at(y, i) * (at(dy, i) - dot));
}

template <typename Y, typename DY, typename DX>
CAFFE_CPU_CLONES void SoftmaxGradColumns(const Y* y, const DY* dy, int64_t classes, int64_t step,
                                         int64_t width, DX* dx) {
  const auto at = [](const auto* x, int64_t i)
                      CAFFE_FORCE_INLINE { return static_cast<double>(x[i]); };
  double dots[kTogether] = {};
  for (int64_t c = 0; c < classes; ++c) {
    for (int64_t p = 0; p < width; ++p) dots[p] += at(y, c * step + p) * at(dy, c * step + p);
  }
  for (int64_t c = 0; c < classes; ++c) {
    for (int64_t p = 0; p < width; ++p)
      dx[c * step + p] = DX(at(y, c * step + p) * (at(dy, c * step + p) - dots[p]));
  }
}

// Calls rows(offset, count) for runs of positions whose scores follow one another, or
// columns(offset, width) for runs whose numbers of a class are next to each other, in parallel.
template <typename Rows, typename Columns>
void ForPositions(const ops::ClassView& view, const Rows& rows, const Columns& columns) {
  const int64_t grain = std::max<int64_t>(1, 4096 / view.classes);
  ParallelFor(view.positions(), grain, [&](int64_t begin, int64_t end) {
    if (view.inner == 1) return rows(view.At(begin, 0), end - begin);
    while (begin < end) {
      const int64_t width = std::min(view.WidthFrom(begin, kTogether), end - begin);
      columns(view.At(begin, 0), width);
      begin += width;
    }
  });
}

void Softmax(const ops::Softmax& op, const KernelContext& ctx) {
  const ops::ClassView view(ctx.output(0).shape, op.axis);
  VisitFloat(ctx.input(0).dtype, [&]<typename X>(TypeTag<X>) {
    VisitWide(ctx.output(0).dtype, [&]<typename Y>(TypeTag<Y>) {
      const X* x = ctx.input(0).as<const X>();
      Y* y = ctx.output(0).as<Y>();
      ForPositions(
          view,
          [&](int64_t at, int64_t count) { SoftmaxRows(x + at, view.classes, count, y + at); },
          [&](int64_t at, int64_t width) {
            SoftmaxColumns(x + at, view.classes, view.inner, width, y + at);
          });
    });
  });
}

void SoftmaxGrad(const ops::SoftmaxGrad& op, const KernelContext& ctx) {
  const ops::ClassView view(ctx.output(0).shape, op.axis);
  VisitWide(ctx.input(0).dtype, [&]<typename Y>(TypeTag<Y>) {
    VisitFloat(ctx.input(1).dtype, [&]<typename DY>(TypeTag<DY>) {
      VisitFloat(ctx.output(0).dtype, [&]<typename DX>(TypeTag<DX>) {
        const Y* y = ctx.input(0).as<const Y>();
        const DY* dy = ctx.input(1).as<const DY>();
        DX* dx = ctx.output(0).as<DX>();
        ForPositions(
            view,
            [&](int64_t at, int64_t count) {
              for (int64_t end = at + count * view.classes; at < end; at += view.classes)
                SoftmaxGradRow(y + at, dy + at, view.classes, dx + at);
            },
            [&](int64_t at, int64_t width) {
              SoftmaxGradColumns(y + at, dy + at, view.classes, view.inner, width, dx + at);
            });
      });
    });
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Softmax, Softmax);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SoftmaxGrad, SoftmaxGrad);

}  // namespace
}  // namespace caffe::cpu
