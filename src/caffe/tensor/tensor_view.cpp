#include "caffe/tensor/tensor_view.hpp"

#include <cstring>

namespace caffe {

std::string_view Name(Layout layout) {
  return layout == Layout::kPlain ? "plain" : "channels-last";
}

namespace {

// Visits (plain offset, channels-last offset) of each element of an image tensor.
template <typename Fn>
void ForEachElement(const Shape& shape, Fn&& fn) {
  const int64_t items = shape[0], channels = shape[1], pixels = shape.count(2);
  for (int64_t n = 0; n < items; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t plain = (n * channels + c) * pixels;
      const int64_t last = n * channels * pixels + c;
      for (int64_t p = 0; p < pixels; ++p) fn(plain + p, last + p * channels);
    }
  }
}

// As VisitFloat(), but also for 8-bit types.
template <typename Fn>
void VisitElement(DType dtype, Fn&& fn) {
  if (dtype == DType::kUInt8) return fn(TypeTag<uint8_t>{});
  if (dtype == DType::kInt8) return fn(TypeTag<int8_t>{});
  VisitFloat(dtype, fn);
}

}  // namespace

void CopyTensor(const TensorView& from, const TensorView& to) {
  CAFFE_ASSERT(from.shape == to.shape, from.shape, " and ", to.shape);
  if (from.dtype == to.dtype && from.layout == to.layout) {
    if (from.count() > 0) std::memmove(to.data, from.data, from.bytes());
    return;
  }
  VisitElement(from.dtype, [&]<typename From>(TypeTag<From>) {
    VisitElement(to.dtype, [&]<typename To>(TypeTag<To>) {
      const From* in = from.as<From>();
      To* out = to.as<To>();
      const auto convert = [](From x) { return To(static_cast<Accum<From>>(x)); };
      if (from.layout == to.layout) {
        const int64_t count = from.count();
        for (int64_t i = 0; i < count; ++i) out[i] = convert(in[i]);
      } else if (from.layout == Layout::kPlain) {
        ForEachElement(from.shape,
                       [&](int64_t plain, int64_t last) { out[last] = convert(in[plain]); });
      } else {
        ForEachElement(from.shape,
                       [&](int64_t plain, int64_t last) { out[plain] = convert(in[last]); });
      }
    });
  });
}

}  // namespace caffe
