#include "caffe/ops/sampling.hpp"

#include <vector>

#include "caffe/cpu/kernels/each_element.hpp"

namespace caffe::cpu {
namespace {

// One thread handles a plane of the image and adds up the gradients of the result's pixels.
template <typename T>
void AddPlane(const ops::SampleGradImage& op, const TensorView& at, int plane, const T* dy, T* dx) {
  using A = Accum<T>;
  const StoredOperand<A> places{&at};
  const int item = plane / op.channels;
  std::vector<A> sums(static_cast<size_t>(op.height) * op.width, A(0));
  for (int pixel = 0; pixel < op.rows * op.columns; ++pixel) {
    const A x = op.X<A>(places, item, pixel), y = op.Y<A>(places, item, pixel);
    if (op.IsFilled(x, y)) continue;
    const ops::SamplingTaps<A> down = op.Taps(y, op.height), across = op.Taps(x, op.width);
    for (int i = 0; i < 2; ++i) {
      for (int k = 0; k < 2; ++k) {
        sums[down.pixel(i) * op.width + across.pixel(k)] +=
            down.weights[i] * across.weights[k] * static_cast<A>(dy[pixel]);
      }
    }
  }
  for (size_t i = 0; i < sums.size(); ++i) dx[i] = T(sums[i]);
}

void SampleGradImage(const ops::SampleGradImage& op, const KernelContext& ctx) {
  const TensorView &dy = ctx.input(0), &dx = ctx.output(0);
  VisitFloat(dy.dtype, [&]<typename T>(TypeTag<T>) {
    ParallelFor(dx.shape.count(0, 2), 1, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        AddPlane<T>(op, ctx.input(1), static_cast<int>(plane),
                    dy.as<const T>() + plane * op.rows * op.columns,
                    dx.as<T>() + plane * op.height * op.width);
      }
    });
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Sample, EachElement<ops::Sample>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SampleGradImage, SampleGradImage);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SampleGradAt, EachElement<ops::SampleGradAt>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::AffineGrid, EachElement<ops::AffineGrid>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::AffineGridGrad, EachElement<ops::AffineGridGrad>);

}  // namespace
}  // namespace caffe::cpu
