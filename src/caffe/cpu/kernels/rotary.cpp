#include "caffe/ops/rotary.hpp"

#include <cmath>

#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// Rows of `width / 2` cosines, then as many sines, for each position.
template <typename A>
void RotationTable(const ops::Rotary& op, A* table) {
  const int64_t half = op.width / 2;
  for (int64_t i = 0; i < half; ++i) {
    const double frequency =
        std::pow(op.base, -2.0 * static_cast<double>(i) / static_cast<double>(op.width));
    for (int64_t position = 0; position < op.positions; ++position) {
      const double angle = static_cast<double>(position) * frequency;
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
    const auto run = [op](const KernelContext& ctx) {
      A* table = static_cast<A*>(ctx.workspace);
      RotationTable(op, table);
      const int64_t rows = ctx.input(0).count() / op.step();
      ParallelFor(rows, 1 + kPointwiseGrain / op.step(), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          RotateRow(op, table + row % op.positions * op.width,
                    ctx.input(0).as<const T>() + row * op.step(),
                    ctx.output(0).as<T>() + row * op.step());
        }
      });
    };
    return Kernel{"", run, static_cast<size_t>(op.positions * op.width) * sizeof(A)};
  });
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Rotary, "rotary-reference",
                              KernelRank::kReference, MakeRotary);

}  // namespace
}  // namespace caffe::cpu
