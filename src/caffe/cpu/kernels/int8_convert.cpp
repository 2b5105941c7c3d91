// Casts and reorders of quantised values.
#include "caffe/cpu/kernels/int8_convert.hpp"

#include "caffe/cpu/kernels/int8.hpp"

namespace caffe::cpu {
namespace {

// From numbers of one scale to those of another.
template <typename From, typename To>
struct Rescale {
  float factor = 1;
  bool is_copy = false;  // 8-bit numbers that stay what they are

  To operator()(From x) const {
    if constexpr (std::is_same_v<From, To>) {
      if (is_copy) return x;
    }
    return ToNumber<To>(static_cast<float>(x) * factor);
  }
};

template <typename From, typename To>
CAFFE_CPU_CLONES void RescaleRange(Rescale<From, To> rescale, const From* x, To* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = rescale(x[i]);
}

// y, columns x rows, is the transpose of x, in blocks that stay in the first-level cache.
template <typename From, typename To>
CAFFE_CPU_CLONES void RescaleTransposed(Rescale<From, To> rescale, const From* x, int64_t rows,
                                        int64_t columns, To* y) {
  constexpr int64_t kBlock = 32;
  for (int64_t r0 = 0; r0 < rows; r0 += kBlock) {
    for (int64_t c0 = 0; c0 < columns; c0 += kBlock) {
      const int64_t r1 = std::min(r0 + kBlock, rows), c1 = std::min(c0 + kBlock, columns);
      for (int64_t c = c0; c < c1; ++c) {
        for (int64_t r = r0; r < r1; ++r) y[c * rows + r] = rescale(x[r * columns + c]);
      }
    }
  }
}

template <typename From, typename To>
void RescaleTensor(const TensorView& x, const TensorView& y) {
  const Rescale<From, To> rescale{ScaleOf(x) / ScaleOf(y), ScaleOf(x) == ScaleOf(y)};
  const From* from = x.as<const From>();
  To* to = y.as<To>();
  if (x.layout == y.layout) {
    ParallelFor(x.count(), kPointwiseGrain, [&](int64_t begin, int64_t end) {
      RescaleRange(rescale, from + begin, to + begin, end - begin);
    });
    return;
  }
  const int64_t channels = x.shape[1], pixels = x.shape.count(2), item = channels * pixels;
  const bool to_last = y.layout == Layout::kChannelsLast;
  const int64_t rows = to_last ? channels : pixels, columns = to_last ? pixels : channels;
  ParallelFor(x.shape[0], 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n)
      RescaleTransposed(rescale, from + n * item, rows, columns, to + n * item);
  });
}

}  // namespace

void ConvertNumbers(const TensorView& x, const TensorView& y) {
  VisitNumber(x.dtype, [&]<typename From>(TypeTag<From>) {
    VisitNumber(y.dtype, [&]<typename To>(TypeTag<To>) { RescaleTensor<From, To>(x, y); });
  });
}

}  // namespace caffe::cpu
