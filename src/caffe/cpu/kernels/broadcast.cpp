#include "caffe/ops/broadcast.hpp"

#include <algorithm>

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

// Sums of `covered` columns over rows, in double to reduce the influence of the order.
template <typename T>
CAFFE_CPU_CLONES void AddRow(const T* x, double* sums, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sums[i] += static_cast<double>(static_cast<Accum<T>>(x[i]));
}
template <typename T>
CAFFE_CPU_CLONES void AddRow(const T* x, const T* z, double* sums, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    sums[i] += static_cast<double>(static_cast<Accum<T>>(x[i])) *
               static_cast<double>(static_cast<Accum<T>>(z[i]));
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
    constexpr int64_t kBlock = 256;
    const int64_t blocks = (view.covered + kBlock - 1) / kBlock;
    ParallelFor(blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        const int64_t c0 = block * kBlock, width = std::min(kBlock, view.covered - c0);
        double sums[kBlock] = {};
        for (int64_t o = 0; o < view.outer; ++o) {
          const int64_t row = (o * view.covered + c0) * view.inner;
          if (view.inner == 1) {
            z == nullptr ? AddRow<T>(x + row, sums, width)
                         : AddRow<T>(x + row, z + row, sums, width);
            continue;
          }
          for (int64_t c = 0; c < width; ++c) {
            const int64_t at = row + c * view.inner;
            sums[c] += SumRow<T>(x + at, z == nullptr ? nullptr : z + at, view.inner);
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
