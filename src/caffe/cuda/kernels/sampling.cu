#include "caffe/cuda/kernels/each_element.cuh"
#include "caffe/ops/sampling.hpp"

namespace caffe::cuda {
namespace {

// A thread owns a row of a plane of the image and scans all of the result's pixels, so that the
// gradients of result pixels that show the same image pixel are added in order. The workspace holds
// the sums.
template <typename T>
struct AddRow {
  using A = Accum<T>;
  ops::SampleGradImage op;
  StoredOperand<A> at;
  const T* dy;
  A* sums;
  T* dx;

  __device__ void operator()(int64_t i) const {
    const int row = static_cast<int>(i) % op.height, plane = static_cast<int>(i) / op.height;
    A* mine = sums + i * op.width;
    for (int w = 0; w < op.width; ++w) mine[w] = 0;
    for (int pixel = 0; pixel < op.rows * op.columns; ++pixel) {
      const A y = op.Y<A>(at, plane / op.channels, pixel);
      if (y <= A(row - 1) || y >= A(row + 1)) continue;
      Add(plane, row, pixel, y, mine);
    }
    for (int w = 0; w < op.width; ++w) dx[i * op.width + w] = T(mine[w]);
  }
  __device__ void Add(int plane, int row, int pixel, A y, A* mine) const {
    const A x = op.X<A>(at, plane / op.channels, pixel);
    if (op.IsFilled(x, y)) return;
    const ops::SamplingTaps<A> down = op.Taps(y, op.height), across = op.Taps(x, op.width);
    const A weight =
        (down.low == row ? down.weights[0] : A(0)) + (down.high == row ? down.weights[1] : A(0));
    const A value = weight * Wide(dy[plane * op.rows * op.columns + pixel]);
    mine[across.low] += across.weights[0] * value;
    mine[across.high] += across.weights[1] * value;
  }
};

KernelOrRefusal MakeSampleGradImage(const ops::SampleGradImage& op, const KernelRequest& request) {
  const Shape image = request.outputs[0].shape;
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
                    ForEach(ctx, image.count(0, 3),
                            AddRow<T>{op,
                                      {InputNumbers(ctx, 1)},
                                      ctx.input(0).as<const T>(),
                                      static_cast<Accum<T>*>(ctx.workspace),
                                      ctx.output(0).as<T>()});
                  });
                },
                static_cast<size_t>(image.count()) * sizeof(double)};
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Sample, EachElement<ops::Sample>);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::SampleGradImage, "sample-grad-image",
                              KernelRank::kReference, MakeSampleGradImage);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::SampleGradAt, EachElement<ops::SampleGradAt>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::AffineGrid, EachElement<ops::AffineGrid>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::AffineGridGrad, EachElement<ops::AffineGridGrad>);

}  // namespace
}  // namespace caffe::cuda
