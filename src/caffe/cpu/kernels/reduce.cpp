#include "caffe/ops/reduce.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// Rows are summed in double, so that long rows keep their precision.
template <typename T>
double ReducedRow(ops::Reduction reduction, const T* x, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double value = static_cast<double>(x[i]);
    switch (reduction) {
      case ops::Reduction::kSum:
      case ops::Reduction::kMean:
        sum += value;
        break;
      case ops::Reduction::kAbsSum:
        sum += std::abs(value);
        break;
      case ops::Reduction::kSumOfSquares:
        sum += value * value;
        break;
    }
  }
  return reduction == ops::Reduction::kMean ? sum / static_cast<double>(count) : sum;
}

void Reduce(const ops::Reduce& op, const KernelContext& ctx) {
  const int64_t rows = ctx.output(0).count();
  const int64_t length = ctx.input(0).count() / std::max<int64_t>(rows, 1);
  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    VisitFloat(ctx.output(0).dtype, [&]<typename U>(TypeTag<U>) {
      const T* x = ctx.input(0).as<const T>();
      U* y = ctx.output(0).as<U>();
      ParallelFor(rows, std::max<int64_t>(1, kPointwiseGrain / std::max<int64_t>(length, 1)),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      y[i] = U(op.coefficient * ReducedRow(op.reduction, x + i * length, length));
                    }
                  });
    });
  });
}

// The gradient of `count` elements of a row; `factor` is that of its result.
template <typename T, typename A>
CAFFE_CPU_CLONES void ReduceGradRow(ops::Reduction reduction, const T* x, A factor, int64_t length,
                                    T* dx, int64_t count) {
  switch (reduction) {
    case ops::Reduction::kSum:
      std::fill_n(dx, count, T(factor));
      break;
    case ops::Reduction::kMean:
      std::fill_n(dx, count, T(factor / A(length)));
      break;
    case ops::Reduction::kAbsSum:
      for (int64_t i = 0; i < count; ++i) {
        const A value = static_cast<A>(x[i]);
        dx[i] = T(value > 0 ? factor : value < 0 ? -factor : A(0));
      }
      break;
    case ops::Reduction::kSumOfSquares:
      for (int64_t i = 0; i < count; ++i) dx[i] = T(2 * factor * static_cast<A>(x[i]));
      break;
  }
}

void ReduceGrad(const ops::ReduceGrad& op, const KernelContext& ctx) {
  const int64_t rows = ctx.input(1).count();
  const int64_t length = ctx.input(0).count() / std::max<int64_t>(rows, 1);
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    using A = Accum<T>;
    const T* x = ctx.input(0).as<const T>();
    const T* dy = ctx.input(1).as<const T>();
    T* dx = ctx.output(0).as<T>();
    ParallelFor(rows * length, kPointwiseGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end;) {
        const int64_t row = i / length, count = std::min((row + 1) * length, end) - i;
        const A factor = A(op.coefficient) * static_cast<A>(dy[row]);
        ReduceGradRow(op.reduction, x + i, factor, length, dx + i, count);
        i += count;
      }
    });
  });
}

void ArgMax(const ops::ArgMax& op, const KernelContext& ctx) {
  const Shape& shape = ctx.input(0).shape;
  const int64_t outer = shape.count(0, op.axis), extent = shape[op.axis],
                inner = shape.count(op.axis + 1);
  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    const T* x = ctx.input(0).as<const T>();
    const auto write = [](const TensorView& view, int64_t i, double value) {
      VisitFloat(view.dtype, [&]<typename U>(TypeTag<U>) { view.as<U>()[i] = U(value); });
    };
    // Sorting needs a total order: a NaN counts as -infinity and comes after it by index.
    static thread_local std::vector<std::pair<double, int64_t>> row;
    constexpr double kSmallest = -std::numeric_limits<double>::infinity();
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) {
        row.clear();
        for (int64_t c = 0; c < extent; ++c) {
          const auto value = static_cast<double>(x[(o * extent + c) * inner + i]);
          std::isnan(value) ? row.emplace_back(kSmallest, c - extent) : row.emplace_back(value, c);
        }
        std::partial_sort(row.begin(), row.begin() + op.top_k, row.end(), std::greater<>());
        for (int64_t k = 0; k < op.top_k; ++k) {
          const int64_t at = (o * op.top_k + k) * inner + i;
          auto [value, c] = row[k];
          if (c < 0) value = std::numeric_limits<double>::quiet_NaN(), c += extent;
          if (ctx.has_output(0)) write(ctx.output(0), at, static_cast<double>(c));
          if (ctx.has_output(1)) write(ctx.output(1), at, value);
        }
      }
    }
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Reduce, Reduce);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::ReduceGrad, ReduceGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::ArgMax, ArgMax);

}  // namespace
}  // namespace caffe::cpu
