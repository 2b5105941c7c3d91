#include <cmath>

#include "caffe/cuda/launch.cuh"
#include "caffe/cuda/numbers.cuh"
#include "caffe/ops/rotary.hpp"

namespace caffe::cuda {
namespace {

// The first positions of items.
struct FirstPositions {
  Numbers start, cont;

  explicit FirstPositions(const KernelContext& ctx)
      : start(InputNumbers(ctx, ops::Rotary::kStart)),
        cont(InputNumbers(ctx, ops::Rotary::kCont)) {}
  __device__ double Of(int64_t item) const {
    return cont.GetOr(item, 1.0) == 0 ? 0.0 : start.GetOr(item, 0.0);
  }
};

// A pair of elements of a head, or one of the others.
template <typename T>
struct RotateElements {
  using A = Accum<T>;
  ops::Rotary op;
  FirstPositions first_positions;
  const T* x;
  T* y;

  __device__ void operator()(int64_t i) const {
    const int64_t half = op.width / 2, pairs = op.heads * half;
    int64_t element, position;
    const int64_t row = Divide(i, pairs + op.others, &element);
    const int64_t first = row * op.step();
    if (element >= pairs) {
      const int64_t at = first + op.heads * op.width + element - pairs;
      y[at] = x[at];
      return;
    }
    int64_t k;
    const int64_t head = Divide(element, half, &k), at = first + head * op.width + k;
    const int64_t item = Divide(row, op.positions, &position);
    const double angle =
        (first_positions.Of(item) + static_cast<double>(position)) *
        std::pow(op.base, -2.0 * static_cast<double>(k) / static_cast<double>(op.width));
    const A cosine = static_cast<A>(std::cos(angle));
    const A sine = static_cast<A>(op.inverse ? -std::sin(angle) : std::sin(angle));
    const A a = Wide(x[at]), b = Wide(x[at + half]);
    y[at] = T(a * cosine - b * sine);
    y[at + half] = T(b * cosine + a * sine);
  }
};

// Runs after the rotation, because next may be start.
struct NextPositions {
  FirstPositions first;
  double positions;
  Numbers next;

  __device__ void operator()(int64_t item) const { next.Set(item, first.Of(item) + positions); }
};

void Rotary(const ops::Rotary& op, const KernelContext& ctx) {
  const FirstPositions first(ctx);
  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    const int64_t rows = ctx.input(0).count() / op.step();
    ForEach(ctx, rows * (op.heads * op.width / 2 + op.others),
            RotateElements<T>{op, first, ctx.input(0).as<const T>(), ctx.output(0).as<T>()});
  });
  if (ctx.has_output(op.kNext)) {
    ForEach(ctx, ctx.output(op.kNext).count(),
            NextPositions{first, static_cast<double>(op.positions), OutputNumbers(ctx, op.kNext)});
  }
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Rotary, Rotary);

}  // namespace
}  // namespace caffe::cuda
