#include <cmath>

#include "caffe/cuda/launch.cuh"
#include "caffe/ops/rotary.hpp"

namespace caffe::cuda {
namespace {

// A pair of elements of a head, or one of the others.
template <typename T>
struct RotateElements {
  using A = Accum<T>;
  ops::Rotary op;
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
    Divide(row, op.positions, &position);
    const double angle =
        static_cast<double>(position) *
        std::pow(op.base, -2.0 * static_cast<double>(k) / static_cast<double>(op.width));
    const A cosine = static_cast<A>(std::cos(angle));
    const A sine = static_cast<A>(op.inverse ? -std::sin(angle) : std::sin(angle));
    const A a = Wide(x[at]), b = Wide(x[at + half]);
    y[at] = T(a * cosine - b * sine);
    y[at + half] = T(b * cosine + a * sine);
  }
};

void Rotary(const ops::Rotary& op, const KernelContext& ctx) {
  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    const int64_t rows = ctx.input(0).count() / op.step();
    ForEach(ctx, rows * (op.heads * op.width / 2 + op.others),
            RotateElements<T>{op, ctx.input(0).as<const T>(), ctx.output(0).as<T>()});
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Rotary, Rotary);

}  // namespace
}  // namespace caffe::cuda
