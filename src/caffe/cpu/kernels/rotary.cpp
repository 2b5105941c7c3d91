#include "caffe/ops/rotary.hpp"

#include <cmath>

#include "caffe/cpu/kernels/element.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// The first position of an item.
double StartOf(const KernelContext& ctx, int64_t item) {
  using Op = ops::Rotary;
  return ElementOr(ctx, Op::kCont, item, 1) == 0 ? 0 : ElementOr(ctx, Op::kStart, item, 0);
}

// Rows of `width / 2` cosines, then as many sines, for each position from `start` on.
template <typename A>
void RotationTable(const ops::Rotary& op, double start, A* table) {
  const int64_t half = op.width / 2;
  for (int64_t i = 0; i < half; ++i) {
    const double frequency =
        std::pow(op.base, -2.0 * static_cast<double>(i) / static_cast<double>(op.width));
    for (int64_t position = 0; position < op.positions; ++position) {
      const double angle = (start + static_cast<double>(position)) * frequency;
      table[position * op.width + i] = static_cast<A>(std::cos(angle));
      table[position * op.width + half + i] =
          static_cast<A>(op.inverse ? -std::sin(angle) : std::sin(angle));
    }
  }
}

template <typename T, typename A>
CAFFE_CPU_CLONES void RotateRow(const ops::Rotary& op, const A* rotation, const T* x, T* y) {
  const int64_t half = op.width / 2;
  for (int64_t head = 0; head < op.heads; ++head) {
    const T* from = x + head * op.width;
    T* to = y + head * op.width;
    for (int64_t i = 0; i < half; ++i) {
      const A a = static_cast<A>(from[i]), b = static_cast<A>(from[half + i]);
      to[i] = T(a * rotation[i] - b * rotation[half + i]);
      to[half + i] = T(b * rotation[i] + a * rotation[half + i]);
    }
  }
  for (int64_t i = op.heads * op.width; i < op.step(); ++i) y[i] = x[i];
}

KernelOrRefusal MakeRotary(const ops::Rotary& op, const KernelRequest& request) {
  return VisitFloat(request.inputs[0].dtype, [&]<typename T>(TypeTag<T>) -> KernelOrRefusal {
    using A = Accum<T>;
    const int64_t rows = request.inputs[0].count() / op.step();
    const bool has_starts = request.inputs.size() > op.kStart && request.inputs[op.kStart].present;
    const int64_t tables = has_starts ? rows / op.positions : 1;  // one for all items, or one each
    const auto run = [op, rows, tables](const KernelContext& ctx) {
      A* table = static_cast<A*>(ctx.workspace);
      for (int64_t i = 0; i < tables; ++i)
        RotationTable(op, StartOf(ctx, i), table + i * op.positions * op.width);
      ParallelFor(rows, 1 + kPointwiseGrain / op.step(), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          RotateRow(op, table + row % (tables * op.positions) * op.width,
                    ctx.input(0).as<const T>() + row * op.step(),
                    ctx.output(0).as<T>() + row * op.step());
        }
      });
      for (int64_t i = 0; i < rows / op.positions && ctx.has_output(op.kNext); ++i)
        SetElement(ctx.output(op.kNext), i, StartOf(ctx, i) + static_cast<double>(op.positions));
    };
    return Kernel{"", run, static_cast<size_t>(tables * op.positions * op.width) * sizeof(A)};
  });
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Rotary, "rotary-reference",
                              KernelRank::kReference, MakeRotary);

}  // namespace
}  // namespace caffe::cpu
