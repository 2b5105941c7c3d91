// Casts and reorders of quantized values.
#include "caffe/cpu/kernels/int8_convert.hpp"

#include "caffe/cpu/kernels/int8.hpp"
#include "caffe/cpu/transpose.hpp"

namespace caffe::cpu {
namespace {

// Converts numbers from one scale to another.
template <typename From, typename To>
struct Rescale {
  float factor = 1;
  bool is_copy = false;  // 8-bit numbers that stay unchanged

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
  TransposeImages<From, To>(x, y, std::is_same_v<From, To> && rescale.is_copy,
                            [&rescale](const From* some, To* numbers, int64_t count) {
                              RescaleRange(rescale, some, numbers, count);
                            });
}

}  // namespace

void ConvertNumbers(const TensorView& x, const TensorView& y) {
  VisitNumber(x.dtype, [&]<typename From>(TypeTag<From>) {
    VisitNumber(y.dtype, [&]<typename To>(TypeTag<To>) { RescaleTensor<From, To>(x, y); });
  });
}

}  // namespace caffe::cpu
