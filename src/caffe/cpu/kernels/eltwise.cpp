#include "caffe/ops/eltwise.hpp"

#include <algorithm>

#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// y = c0 * x0 + c1 * x1, the common case, and y += c * x for further operands.
template <typename T>
CAFFE_CPU_CLONES void SumPair(const T* x0, Accum<T> c0, const T* x1, Accum<T> c1, T* y,
                              int64_t count) {
  using A = Accum<T>;
  for (int64_t i = 0; i < count; ++i)
    y[i] = T(c0 * static_cast<A>(x0[i]) + c1 * static_cast<A>(x1[i]));
}
template <typename T>
CAFFE_CPU_CLONES void SumPairRelu(const T* x0, const T* x1, T* y, int64_t count) {
  using A = Accum<T>;
  for (int64_t i = 0; i < count; ++i) {
    const A sum = static_cast<A>(x0[i]) + static_cast<A>(x1[i]);
    y[i] = T(sum > A(0) ? sum : A(0) * sum + A(0));  // NaN stays
  }
}

template <typename T>
void SumOperands(const ops::EltwiseSum& op, const KernelContext& ctx, int64_t begin, int64_t end) {
  using A = Accum<T>;
  const int count = static_cast<int>(ctx.inputs.size());
  const auto coefficient = [&](int i) {
    return op.coefficients.empty() ? A(1) : A(op.coefficients[i]);
  };
  T* y = ctx.output(0).as<T>();
  if (count == 2) {
    const T *x0 = ctx.input(0).as<const T>() + begin, *x1 = ctx.input(1).as<const T>() + begin;
    if (op.coefficients.empty() && !op.epilogue.empty() && ops::IsAddRelu(op.epilogue)) {
      SumPairRelu<T>(x0, x1, y + begin, end - begin);
      return;
    }
    if (op.epilogue.empty()) {
      SumPair<T>(x0, coefficient(0), x1, coefficient(1), y + begin, end - begin);
      return;
    }
  }
  for (int64_t i = begin; i < end; ++i) {
    A sum = 0;
    for (int k = 0; k < count; ++k)
      sum += coefficient(k) * static_cast<A>(ctx.input(k).as<const T>()[i]);
    for (const ops::Pointwise& entry : op.epilogue) sum = ops::ApplyPointwise(entry, sum);
    y[i] = T(sum);
  }
}

template <typename Fn>
void ForElements(const TensorView& y, Fn fn) {
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T> tag) {
    ParallelFor(y.count(), kPointwiseGrain,
                [&](int64_t begin, int64_t end) { fn(tag, begin, end); });
  });
}

void EltwiseSum(const ops::EltwiseSum& op, const KernelContext& ctx) {
  ForElements(ctx.output(0), [&]<typename T>(TypeTag<T>, int64_t begin, int64_t end) {
    SumOperands<T>(op, ctx, begin, end);
  });
}

void EltwiseProd(const ops::EltwiseProd&, const KernelContext& ctx) {
  ForElements(ctx.output(0), [&]<typename T>(TypeTag<T>, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Accum<T> product = 1;
      for (const TensorView& x : ctx.inputs) product *= static_cast<Accum<T>>(x.as<const T>()[i]);
      ctx.output(0).as<T>()[i] = T(product);
    }
  });
}

void EltwiseProdGrad(const ops::EltwiseProdGrad& op, const KernelContext& ctx) {
  constexpr int kFirst = 2;  // operands 0 and 1 are y and dy
  ForElements(ctx.output(0), [&]<typename T>(TypeTag<T>, int64_t begin, int64_t end) {
    using A = Accum<T>;
    for (int64_t i = begin; i < end; ++i) {
      A others = 1;
      if (op.stable) {
        for (size_t k = kFirst; k < ctx.inputs.size(); ++k) {
          if (static_cast<int>(k) - kFirst != op.index) {
            others *= static_cast<A>(ctx.input(static_cast<int>(k)).as<const T>()[i]);
          }
        }
      } else {
        others = static_cast<A>(ctx.input(0).as<const T>()[i]) /
                 static_cast<A>(ctx.input(kFirst + op.index).as<const T>()[i]);
      }
      ctx.output(0).as<T>()[i] = T(others * static_cast<A>(ctx.input(1).as<const T>()[i]));
    }
  });
}

void EltwiseMax(const ops::EltwiseMax&, const KernelContext& ctx) {
  ForElements(ctx.output(0), [&]<typename T>(TypeTag<T>, int64_t begin, int64_t end) {
    using A = Accum<T>;
    VisitFloat(ctx.has_output(1) ? ctx.output(1).dtype : DType::kFloat,
               [&]<typename M>(TypeTag<M>) {
                 for (int64_t i = begin; i < end; ++i) {
                   const A first = static_cast<A>(ctx.input(0).as<const T>()[i]);
                   A best = static_cast<A>(ctx.input(1).as<const T>()[i]);
                   int winner = 1;
                   if (first > best) best = first, winner = 0;
                   for (int k = 2; k < static_cast<int>(ctx.inputs.size()); ++k) {
                     const A x = static_cast<A>(ctx.input(k).as<const T>()[i]);
                     if (x > best) best = x, winner = k;
                   }
                   ctx.output(0).as<T>()[i] = T(best);
                   if (ctx.has_output(1)) ctx.output(1).as<M>()[i] = M(static_cast<float>(winner));
                 }
               });
  });
}

void EltwiseMaxGrad(const ops::EltwiseMaxGrad& op, const KernelContext& ctx) {
  ForElements(ctx.output(0), [&]<typename T>(TypeTag<T>, int64_t begin, int64_t end) {
    VisitFloat(ctx.input(0).dtype, [&]<typename M>(TypeTag<M>) {
      const M* mask = ctx.input(0).as<const M>();
      for (int64_t i = begin; i < end; ++i) {
        const bool won = static_cast<float>(mask[i]) == static_cast<float>(op.index);
        ctx.output(0).as<T>()[i] = won ? ctx.input(1).as<const T>()[i] : T(0.0f);
      }
    });
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::EltwiseSum, EltwiseSum, FusesAny);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::EltwiseProd, EltwiseProd);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::EltwiseProdGrad, EltwiseProdGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::EltwiseMax, EltwiseMax);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::EltwiseMaxGrad, EltwiseMaxGrad);

}  // namespace
}  // namespace caffe::cpu
