// Reference kernel of ops::TransformImages.
#include "caffe/ops/images.hpp"

#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

ops::ImageWindow WindowOf(const TensorView& windows, int64_t item) {
  return VisitFloat(windows.dtype, [&]<typename T>(TypeTag<T>) {
    const T* row = windows.as<const T>() + item * ops::ImageWindow::kNumbers;
    const auto number = [&](int i) { return static_cast<int64_t>(static_cast<float>(row[i])); };
    return ops::ImageWindow{number(0), number(1), number(2) != 0, number(3) != 0};
  });
}

// Calls `fn` with a function mean(position of channel 0, channel), whatever the operand's type.
template <typename Fn>
void VisitMean(const KernelContext& ctx, const Fn& fn) {
  if (!ctx.has_input(2)) return fn([](int64_t, int64_t) { return 0.0f; });
  const TensorView& mean = ctx.input(2);
  const int64_t pixels = mean.shape.num_axes() == 1 ? 0 : mean.shape.count(1);
  VisitFloat(mean.dtype, [&]<typename T>(TypeTag<T>) {
    const T* values = mean.as<const T>();
    if (pixels == 0) {
      fn([=](int64_t, int64_t c) { return static_cast<float>(values[c]); });
    } else {
      fn([=](int64_t place, int64_t c) { return static_cast<float>(values[c * pixels + place]); });
    }
  });
}

void TransformImages(const ops::TransformImages& op, const KernelContext& ctx) {
  const TensorView &images = ctx.input(0), &y = ctx.output(0);
  const int64_t channels = y.shape[1], height = y.shape[2], width = y.shape[3];
  const bool is_plain = y.layout == Layout::kPlain;
  const int64_t y_stride = is_plain ? height * width : 1;
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    VisitMean(ctx, [&](const auto& mean) {
      ParallelFor(y.shape[0] * height, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t item = i / height, row = i % height;
          const ops::ImageWindow window = WindowOf(ctx.input(1), item);
          const uint8_t* image = images.as<const uint8_t>() + item * images.shape.count(1);
          T* y_row = y.as<T>() + item * channels * height * width +
                     row * width * (is_plain ? 1 : channels);
          for (int64_t column = 0; column < width; ++column) {
            const ops::PixelPlace place(window, channels, images.shape[2], images.shape[3], width,
                                        row, column);
            T* pixel = y_row + column * (is_plain ? 1 : channels);
            for (int64_t c = 0; c < channels; ++c) {
              const auto x = static_cast<float>(image[place.byte + c * place.byte_stride]);
              pixel[c * y_stride] = T((x - mean(place.mean, c)) * op.scale);
            }
          }
        }
      });
    });
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::TransformImages, TransformImages);

}  // namespace
}  // namespace caffe::cpu
