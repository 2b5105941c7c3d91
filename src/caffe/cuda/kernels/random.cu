#include "caffe/cuda/map.cuh"
#include "caffe/cuda/random_on_device.cuh"
#include "caffe/ops/random.hpp"

namespace caffe::cuda {
namespace {

// One block of the random stream serves four neighbours in row-major order.
template <typename T>
struct DropFour {
  RandomOnDevice random;
  uint64_t stream;
  uint32_t threshold;
  Accum<T> scale;
  const T* x;
  T* y;
  int64_t count;

  __device__ void operator()(int64_t block) const {
    const auto bits = random.Stream(stream).Block(block, random.pass());
    if (block * 4 + 4 <= count) {
      const Pack<T, 4> in = PackAt<T, 4>(x, block);
      Pack<T, 4> out;
#pragma unroll
      for (int k = 0; k < 4; ++k) out.values[k] = Dropped(bits[k], in.values[k]);
      reinterpret_cast<Pack<T, 4>*>(y)[block] = out;
      return;
    }
    for (int64_t i = block * 4; i < count; ++i) y[i] = Dropped(bits[i % 4], x[i]);
  }
  __device__ T Dropped(uint32_t bits, T value) const {
    return T(bits >= threshold ? Wide(value) * scale : Accum<T>(0));
  }
};

// For channels-last or unaligned tensors: each element looks up its own number.
template <typename T>
struct DropOne {
  RandomOnDevice random;
  uint64_t stream;
  uint32_t threshold;
  Accum<T> scale;
  const T* x;
  T* y;
  int64_t channels, pixels;  // both are 1 if memory is in row-major order

  __device__ void operator()(int64_t at) const {
    int64_t c, pixel;
    const int64_t item = Divide(Divide(at, channels, &c), pixels, &pixel);
    const int64_t i = (item * channels + c) * pixels + pixel;
    const uint32_t bits = random.Stream(stream).Bits(i, random.pass());
    y[at] = T(bits >= threshold ? Wide(x[at]) * scale : Accum<T>(0));
  }
};

void Dropout(const ops::Dropout& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const RandomOnDevice random(ctx);
  const auto threshold = static_cast<uint32_t>(op.ratio * 4294967296.0);
  const bool is_plain = y.layout == Layout::kPlain || y.shape.count(2) == 1;
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    const auto scale = static_cast<Accum<T>>(op.factor());
    if (is_plain && IsPackAligned<T, 4>(x.as<T>()) && IsPackAligned<T, 4>(y.as<T>())) {
      ForEach(
          ctx, (y.count() + 3) / 4,
          DropFour<T>{random, op.stream, threshold, scale, x.as<const T>(), y.as<T>(), y.count()});
      return;
    }
    ForEach(ctx, y.count(),
            DropOne<T>{random, op.stream, threshold, scale, x.as<const T>(), y.as<T>(),
                       is_plain ? 1 : y.shape[1], is_plain ? 1 : y.shape.count(2)});
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Dropout, Dropout);

}  // namespace
}  // namespace caffe::cuda
