#include "caffe/ops/broadcast.hpp"

#include <algorithm>
#include <type_traits>

#include "caffe/cpu/kernels/element.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// y = x * s + b over one row of `covered` elements (inner == 1), or one of `inner` elements.
template <typename T, typename A>
CAFFE_CPU_CLONES void ScaleShiftRow(const T* x, const A* s, const A* b, T* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = T(static_cast<A>(x[i]) * s[i] + b[i]);
}

template <typename T, typename A>
CAFFE_CPU_CLONES void ScaleShiftRow(const T* x, A s, A b, T* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = T(static_cast<A>(x[i]) * s + b);
}

// `scale` and `shift`: operand indexes; -1: none.
void ScaleAndShift(const ops::BroadcastAxes& axes, const KernelContext& ctx, int scale, int shift) {
  const ops::CoveredView view(ctx.input(0), axes);
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    using A = Accum<T>;
    const T* x = ctx.input(0).as<const T>();
    T* y = ctx.output(0).as<T>();
    const auto factor = [&](int64_t c) { return static_cast<A>(ElementOr(ctx, scale, c, 1)); };
    const auto offset = [&](int64_t c) { return static_cast<A>(ElementOr(ctx, shift, c, 0)); };
    ParallelFor(
        view.outer,
        std::max<int64_t>(1, kPointwiseGrain / std::max<int64_t>(1, view.covered * view.inner)),
        [&](int64_t begin, int64_t end) {
          // Rows of channels-last images: factors are gathered once per block of channels.
          constexpr int64_t kBlock = 256;
          A s[kBlock], b[kBlock];
          for (int64_t c0 = 0; c0 < view.covered; c0 += kBlock) {
            const int64_t block = std::min(kBlock, view.covered - c0);
            for (int64_t c = 0; c < block; ++c) s[c] = factor(c0 + c), b[c] = offset(c0 + c);
            for (int64_t o = begin; o < end; ++o) {
              const int64_t row = (o * view.covered + c0) * view.inner;
              if (view.inner == 1) {
                ScaleShiftRow<T, A>(x + row, s, b, y + row, block);
                continue;
              }
              for (int64_t c = 0; c < block; ++c) {
                ScaleShiftRow<T, A>(x + row + c * view.inner, s[c], b[c], y + row + c * view.inner,
                                    view.inner);
              }
            }
          }
        });
  });
}

void ScaleShift(const ops::ScaleShift& op, const KernelContext& ctx) {
  ScaleAndShift(op, ctx, 1, 2);
}
void AddBias(const ops::AddBias& op, const KernelContext& ctx) {
  ScaleAndShift(op, ctx, -1, 1);
}

// Rows that are added before they are added to the sums in double.
constexpr int64_t kRowsAtOnce = 4;

// The type in which they are added: 16-bit numbers and their products are exact in float.
template <typename T>
using SumOfFew = std::conditional_t<sizeof(T) == 2, float, double>;

// Adds rows, `step` apart, to sums of columns in double, to reduce the influence of the order. If
// kHasFactor, the elements are multiplied by those of z.
template <typename T, bool kHasFactor>
CAFFE_CPU_CLONES void AddRows(const T* x, const T* z, int64_t rows, int64_t step, int64_t columns,
                              double* sums) {
  using S = SumOfFew<T>;
  const auto term = [=](int64_t at) CAFFE_FORCE_INLINE {
    const S value = static_cast<S>(x[at]);
    if constexpr (kHasFactor) {
      return value * static_cast<S>(z[at]);
    } else {
      return value;
    }
  };
  int64_t r = 0;
  for (; r + kRowsAtOnce <= rows; r += kRowsAtOnce) {
    const int64_t row = r * step;
    for (int64_t c = row; c < row + columns; ++c) {
      sums[c - row] += static_cast<double>((term(c) + term(c + step)) +
                                           (term(c + 2 * step) + term(c + 3 * step)));
    }
  }
  for (; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) sums[c] += static_cast<double>(term(r * step + c));
  }
}

template <typename T>
CAFFE_CPU_CLONES double SumRow(const T* x, const T* z, int64_t count) {
  double sum[8] = {};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (int k = 0; k < 8; ++k) {
      const double factor =
          z == nullptr ? 1.0 : static_cast<double>(static_cast<Accum<T>>(z[i + k]));
      sum[k] += static_cast<double>(static_cast<Accum<T>>(x[i + k])) * factor;
    }
  }
  for (; i < count; ++i) {
    const double factor = z == nullptr ? 1.0 : static_cast<double>(static_cast<Accum<T>>(z[i]));
    sum[0] += static_cast<double>(static_cast<Accum<T>>(x[i])) * factor;
  }
  return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

void SumToAxes(const ops::SumToAxes& op, const KernelContext& ctx) {
  const ops::CoveredView view(ctx.input(0), op);
  const TensorView& s = ctx.output(0);
  const auto store = [&](int64_t c, double sum) {
    VisitFloat(s.dtype, [&]<typename S>(TypeTag<S>) {
      S& out = s.as<S>()[c];
      out = S(ctx.accumulates(0) ? sum + static_cast<double>(out) : sum);
    });
  };
  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    const T* x = ctx.input(0).as<const T>();
    const T* z = ctx.has_input(1) ? ctx.input(1).as<const T>() : nullptr;
    constexpr int64_t kBlock = 256, kUnit = 64;  // threads share units of columns
    ParallelFor((view.covered + kUnit - 1) / kUnit, 1, [&](int64_t begin, int64_t end) {
      const int64_t last = std::min(end * kUnit, view.covered);
      for (int64_t c0 = begin * kUnit; c0 < last; c0 += kBlock) {
        const int64_t width = std::min(kBlock, last - c0);
        double sums[kBlock] = {};
        if (view.inner == 1) {
          z == nullptr ? AddRows<T, false>(x + c0, nullptr, view.outer, view.covered, width, sums)
                       : AddRows<T, true>(x + c0, z + c0, view.outer, view.covered, width, sums);
        } else {
          for (int64_t o = 0; o < view.outer; ++o) {
            for (int64_t c = 0; c < width; ++c) {
              const int64_t at = (o * view.covered + c0 + c) * view.inner;
              sums[c] += SumRow<T>(x + at, z == nullptr ? nullptr : z + at, view.inner);
            }
          }
        }
        for (int64_t c = 0; c < width; ++c) store(c0 + c, sums[c]);
      }
    });
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::ScaleShift, ScaleShift);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::AddBias, AddBias);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SumToAxes, SumToAxes);

}  // namespace
}  // namespace caffe::cpu
