#include "caffe/cuda/int8.cuh"
#include "caffe/cuda/int8_convert.hpp"
#include "caffe/cuda/transpose.cuh"

namespace caffe::cuda {
namespace {

// Converts numbers of one scale to another.
template <typename From, typename To>
struct Rescale {
  float factor;
  bool is_copy;  // 8-bit numbers that do not change

  __device__ To Of(From x) const {
    if constexpr (std::is_same_v<From, To>) {
      if (is_copy) return x;
    }
    return ops::ToNumber<To>(static_cast<float>(x) * factor);
  }
  __device__ void operator()(From x, To& y) const { y = Of(x); }
};

template <typename From, typename To, int N>
struct RescalePack {
  Rescale<From, To> rescale;
  const From* x;
  To* y;

  __device__ void operator()(int64_t pack) const {
    const Pack<From, N> from = PackAt<From, N>(x, pack);
    Pack<To, N> to;
#pragma unroll
    for (int k = 0; k < N; ++k) to.values[k] = rescale.Of(from.values[k]);
    reinterpret_cast<Pack<To, N>*>(y)[pack] = to;
  }
};

template <typename From, typename To>
void RescaleTensor(const KernelContext& ctx, const TensorView& x, const TensorView& y) {
  const float from = ops::ScaleOf(x), to = ops::ScaleOf(y);
  const Rescale<From, To> rescale{from / to, from == to};
  if (x.layout != y.layout) {
    const int64_t channels = x.shape[1], pixels = x.shape.count(2);
    const bool to_last = y.layout == Layout::kChannelsLast;
    Transpose(ctx, rescale, x.as<const From>(), x.shape[0], to_last ? channels : pixels,
              to_last ? pixels : channels, y.as<To>());
    return;
  }
  VisitChannelPacks(x.count(), [&]<int N>(std::integral_constant<int, N>) {
    ForEach(ctx, x.count() / N, RescalePack<From, To, N>{rescale, x.as<const From>(), y.as<To>()});
  });
}

}  // namespace

void ConvertNumbers(const KernelContext& ctx, const TensorView& x, const TensorView& y) {
  VisitNumber(x.dtype, [&]<typename From>(TypeTag<From>) {
    VisitNumber(y.dtype, [&]<typename To>(TypeTag<To>) { RescaleTensor<From, To>(ctx, x, y); });
  });
}

}  // namespace caffe::cuda
