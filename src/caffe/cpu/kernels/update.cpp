#include "caffe/ops/update.hpp"

#include <array>
#include <cmath>

#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

template <typename T>
struct SgdScalars {
  T rate, momentum, decay, gradient_scale;
  T l1, l2;
};

template <typename T>
CAFFE_CPU_CLONES void SgdRange(const SgdScalars<T> s, const T* g, T* w, T* h, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const T sign = T(w[i] > 0) - T(w[i] < 0);
    const T gradient = s.gradient_scale * g[i] + s.l2 * w[i] + s.l1 * sign;
    h[i] = s.momentum * h[i] + s.rate * gradient;
    w[i] -= h[i];
  }
}

void SgdUpdate(const ops::SgdUpdate& op, const KernelContext& ctx) {
  const double* scalars = ctx.input(1).as<const double>();
  const TensorView &w = ctx.output(0), &h = ctx.output(1);
  const auto update = [&]<typename T>(TypeTag<T>) {
    SgdScalars<T> s{};
    s.rate = static_cast<T>(scalars[0] * op.lr_mult);
    s.momentum = static_cast<T>(scalars[1]);
    s.gradient_scale = static_cast<T>(scalars[3]);
    const T decay = static_cast<T>(scalars[2] * op.decay_mult);
    (op.regularization == ops::Regularization::kL1 ? s.l1 : s.l2) = decay;
    if (op.regularization == ops::Regularization::kNone) s.l2 = 0;
    ParallelFor(w.count(), kPointwiseGrain, [&](int64_t begin, int64_t end) {
      SgdRange<T>(s, ctx.input(0).as<const T>() + begin, w.as<T>() + begin, h.as<T>() + begin,
                  end - begin);
    });
  };
  if (w.dtype == DType::kDouble) {
    update(TypeTag<double>{});
  } else {
    CAFFE_ASSERT(w.dtype == DType::kFloat);
    update(TypeTag<float>{});
  }
}

// fn(begin, end) of 64 blocks, so that a sum does not depend on threads.
constexpr int64_t kBlocks = 64;
template <typename Fn>
std::array<double, kBlocks> ReduceBlocks(int64_t count, const Fn& fn) {
  std::array<double, kBlocks> partial{};
  ParallelFor(kBlocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      partial[block] = fn(count * block / kBlocks, count * (block + 1) / kBlocks);
    }
  });
  return partial;
}

void StoreSum(const KernelContext& ctx, const std::array<double, kBlocks>& partial) {
  double total = ctx.accumulates(0) ? *ctx.output(0).as<double>() : 0;
  for (const double sum : partial) total += sum;
  *ctx.output(0).as<double>() = total;
}

template <typename T>
double SumOfProducts(const T* x, const T* y, int64_t begin, int64_t end) {
  double sum = 0;
  for (int64_t i = begin; i < end; ++i) {
    sum += static_cast<double>(static_cast<Accum<T>>(x[i])) *
           static_cast<double>(static_cast<Accum<T>>(y[i]));
  }
  return sum;
}

void SumOfSquares(const ops::SumOfSquares&, const KernelContext& ctx) {
  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    const T* x = ctx.input(0).as<const T>();
    StoreSum(ctx, ReduceBlocks(ctx.input(0).count(), [&](int64_t begin, int64_t end) {
               return SumOfProducts(x, x, begin, end);
             }));
  });
}

void Dot(const ops::Dot&, const KernelContext& ctx) {
  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    const T *x = ctx.input(0).as<const T>(), *y = ctx.input(1).as<const T>();
    StoreSum(ctx, ReduceBlocks(ctx.input(0).count(), [&](int64_t begin, int64_t end) {
               return SumOfProducts(x, y, begin, end);
             }));
  });
}

// std::max drops a NaN in its second operand; this keeps it.
double LargerOrNan(double a, double b) {
  return std::isnan(a) || a > b ? a : b;
}

void MaxAbs(const ops::MaxAbs&, const KernelContext& ctx) {
  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    const T* x = ctx.input(0).as<const T>();
    const auto partial = ReduceBlocks(ctx.input(0).count(), [&](int64_t begin, int64_t end) {
      double largest = 0;
      for (int64_t i = begin; i < end; ++i) {
        largest = LargerOrNan(std::abs(static_cast<double>(static_cast<Accum<T>>(x[i]))), largest);
      }
      return largest;
    });
    double largest = ctx.accumulates(0) ? *ctx.output(0).as<double>() : 0;
    for (const double one : partial) largest = LargerOrNan(one, largest);
    *ctx.output(0).as<double>() = largest;
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SgdUpdate, SgdUpdate);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SumOfSquares, SumOfSquares);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Dot, Dot);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::MaxAbs, MaxAbs);

}  // namespace
}  // namespace caffe::cpu
