#include "caffe/ops/update.hpp"

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

void SumOfSquares(const ops::SumOfSquares&, const KernelContext& ctx) {
  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    const T* x = ctx.input(0).as<const T>();
    const int64_t count = ctx.input(0).count();
    double partial[64] = {};  // one per block, so that the sum does not depend on threads
    ParallelFor(64, 1, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        double sum = 0;
        for (int64_t i = count * block / 64; i < count * (block + 1) / 64; ++i) {
          const double value = static_cast<double>(static_cast<Accum<T>>(x[i]));
          sum += value * value;
        }
        partial[block] = sum;
      }
    });
    double total = ctx.accumulates(0) ? *ctx.output(0).as<double>() : 0;
    for (const double sum : partial) total += sum;
    *ctx.output(0).as<double>() = total;
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SgdUpdate, SgdUpdate);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SumOfSquares, SumOfSquares);

}  // namespace
}  // namespace caffe::cpu
