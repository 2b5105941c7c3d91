#include "caffe/cuda/kernels/sum_loss.cuh"
#include "caffe/cuda/random_on_device.cuh"
#include "caffe/ops/mixup.hpp"

namespace caffe::cuda {
namespace {

struct ReadNumber {
  Numbers numbers;

  __device__ double operator()(int i) const { return numbers.Get<double>(i); }
};
struct WriteNumber {
  Numbers numbers;

  __device__ void operator()(int i, double value) const { numbers.Set(i, value); }
};

__device__ inline ops::Mix MixOf(const Numbers& numbers) {
  return numbers.is_present() ? ops::Mix::Read(ReadNumber{numbers}) : ops::Mix{};
}

struct DrawOneMix {
  ops::DrawMix op;
  RandomOnDevice random;
  Numbers mix;

  __device__ void operator()(int64_t) const {
    op.Draw(random.Stream(op.stream), random.pass()).Write(WriteNumber{mix});
  }
};

void DrawMix(const ops::DrawMix& op, const KernelContext& ctx) {
  ForEach(ctx, 1, DrawOneMix{op, RandomOnDevice(ctx), OutputNumbers(ctx, 0)});
}

template <typename T>
struct MixElement {
  Numbers numbers;
  int64_t items, count;          // in an item
  int64_t height, width, depth;  // extents of an item's elements, in memory order
  const T* x;
  T* y;

  __device__ void operator()(int64_t i) const {
    const ops::Mix mix = MixOf(numbers);
    int64_t within;
    const int64_t item = Divide(i, count, &within);
    const T own = x[i];
    if (mix.share == 1 && !mix.is_cut) {
      y[i] = own;
      return;
    }
    const T partner = x[mix.Partner(item, items) * count + within];
    if (mix.is_cut) {
      int64_t column, row;
      Divide(Divide(Divide(within, depth), width, &column), height, &row);
      y[i] = mix.IsPartners(row, column) ? partner : own;
    } else {
      const auto share = static_cast<Accum<T>>(mix.share);
      y[i] = T(share * Wide(own) + (1 - share) * Wide(partner));
    }
  }
};

void MixItems(const ops::MixItems&, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const bool is_image = y.shape.num_axes() == 4;
  const int64_t depth = is_image && y.layout != Layout::kPlain ? y.shape[1] : 1;
  const int64_t height = is_image ? y.shape[2] : 1, width = is_image ? y.shape[3] : 1;
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(ctx, y.count(),
            MixElement<T>{InputNumbers(ctx, 1), y.shape[0], y.shape.count(1), height, width, depth,
                          x.as<const T>(), y.as<T>()});
  });
}

// NaN for items whose label is not a class.
struct ShareOfClass {
  int64_t items, classes;
  Numbers labels, numbers, y;

  __device__ void operator()(int64_t i) const {
    const ops::Mix mix = MixOf(numbers);
    int64_t c;
    const int64_t item = Divide(i, classes, &c);
    const int64_t own = LabelAt(labels, item);
    const int64_t partner = LabelAt(labels, mix.Partner(item, items));
    const bool are_classes = IsClass(own, classes) && IsClass(partner, classes);
    y.Set(i, are_classes ? (c == own ? mix.share : 0) + (c == partner ? 1 - mix.share : 0)
                         : static_cast<double>(NAN));
  }
};

void MixLabels(const ops::MixLabels& op, const KernelContext& ctx) {
  ForEach(ctx, ctx.output(0).count(),
          ShareOfClass{ctx.input(0).count(), op.classes, InputNumbers(ctx, 0), InputNumbers(ctx, 1),
                       OutputNumbers(ctx, 0)});
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::DrawMix, DrawMix);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::MixItems, MixItems);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::MixLabels, MixLabels);

}  // namespace
}  // namespace caffe::cuda
