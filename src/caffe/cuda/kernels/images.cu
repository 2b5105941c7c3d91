// Converts bytes to a net's input in one pass: a thread reads one pixel's channels, which are
// contiguous or next to those of the neighbouring pixels.
#include "caffe/cuda/numbers.cuh"
#include "caffe/ops/images.hpp"

namespace caffe::cuda {
namespace {

template <typename T>
struct TransformPixel {
  const uint8_t* images;
  Numbers windows, mean;
  int64_t channels, image_height, image_width, height, width;
  int64_t mean_stride, mean_pixel_stride;  // between channels, between pixels
  int64_t y_stride, y_pixel_stride;
  float scale;
  T* y;

  __device__ ops::ImageWindow WindowOf(int64_t item) const {
    const int64_t first = item * ops::ImageWindow::kNumbers;
    return {static_cast<int64_t>(windows.Get<float>(first)),
            static_cast<int64_t>(windows.Get<float>(first + 1)), windows.Get<float>(first + 2) != 0,
            windows.Get<float>(first + 3) != 0};
  }

  __device__ void operator()(int64_t i) const {
    int64_t pixel, column;
    const int64_t item = Divide(i, height * width, &pixel);
    const int64_t row = Divide(pixel, width, &column);
    const ops::PixelPlace place(WindowOf(item), channels, image_height, image_width, width, row,
                                column);
    const uint8_t* from = images + item * channels * image_height * image_width + place.byte;
    T* to = y + item * channels * height * width + pixel * y_pixel_stride;
    for (int64_t c = 0; c < channels; ++c) {
      const auto x = static_cast<float>(from[c * place.byte_stride]);
      const float m = mean.GetOr<float>(c * mean_stride + place.mean * mean_pixel_stride, 0.0f);
      to[c * y_stride] = T((x - m) * scale);
    }
  }
};

void TransformImages(const ops::TransformImages& op, const KernelContext& ctx) {
  const TensorView &images = ctx.input(0), &y = ctx.output(0);
  const int64_t channels = y.shape[1], height = y.shape[2], width = y.shape[3];
  const bool is_plain = y.layout == Layout::kPlain;
  const bool is_mean_image = ctx.has_input(2) && ctx.input(2).shape.num_axes() > 1;
  const int64_t image_pixels = images.shape[2] * images.shape[3];
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(ctx, y.shape[0] * height * width,
            TransformPixel<T>{images.as<const uint8_t>(), InputNumbers(ctx, 1),
                              InputNumbers(ctx, 2), channels, images.shape[2], images.shape[3],
                              height, width, is_mean_image ? image_pixels : 1,
                              is_mean_image ? 1 : 0, is_plain ? height * width : 1,
                              is_plain ? 1 : channels, op.scale, y.as<T>()});
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::TransformImages, TransformImages);

}  // namespace
}  // namespace caffe::cuda
