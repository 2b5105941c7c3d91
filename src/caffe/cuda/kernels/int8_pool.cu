// Pooling of quantised channels-last images; a thread processes several channels of a pixel.
#include "caffe/cuda/divisor.cuh"
#include "caffe/cuda/int8.cuh"
#include "caffe/ops/pool.hpp"

namespace caffe::cuda {
namespace {

// Windows of packs of N channels.
template <int N>
struct PooledImage {
  ops::PoolGeometry geometry;
  int64_t height, width;
  Divisor packs, out_width, out_height;

  PooledImage(const ops::PoolGeometry& geometry, const TensorDesc& x, const TensorDesc& y)
      : geometry(geometry),
        height(x.shape[2]),
        width(x.shape[3]),
        packs(x.shape[1] / N),
        out_width(y.shape[3]),
        out_height(y.shape[2]) {}

  // Calls body(pack of x) for the window of a pack of y; returns the divisor of the average.
  template <typename Body>
  __device__ int64_t ForWindow(int64_t pack, const Body& body) const {
    uint32_t c, ow, oh;
    const uint32_t pixel = packs.Divide(static_cast<uint32_t>(pack), &c);
    const int64_t item = out_height.Divide(out_width.Divide(pixel, &ow), &oh);
    const ops::PoolWindow rows = ops::WindowAt(geometry, 0, height, oh);
    const ops::PoolWindow columns = ops::WindowAt(geometry, 1, width, ow);
    for (int64_t h = rows.begin; h < rows.end; ++h) {
      const int64_t row = (item * height + h) * width;
      for (int64_t w = columns.begin; w < columns.end; ++w) body((row + w) * packs.value + c);
    }
    return rows.size * columns.size;
  }
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
__device__ inline uint32_t LargerHalves(TypeTag<int8_t>, uint32_t a, uint32_t b) {
  return __vmaxs2(a, b);
}
__device__ inline uint32_t LargerHalves(TypeTag<uint8_t>, uint32_t a, uint32_t b) {
  return __vmaxu2(a, b);
}

// Compares the four bytes of a word as two pairs of 16-bit numbers, one instruction per pair: a
// byte in the upper half of 16 bits keeps its order.
template <typename T, int N>
__device__ inline Pack<T, N> Larger(const Pack<T, N>& a, const Pack<T, N>& b) requires(N % 4 == 0) {
  struct Words {
    uint32_t values[N / 4];
  };
  const auto x = std::bit_cast<Words>(a), y = std::bit_cast<Words>(b);
  Words larger;
#pragma unroll
  for (int i = 0; i < N / 4; ++i) {
    constexpr uint32_t kUpper = 0xff00ff00;
    const uint32_t odd = LargerHalves(TypeTag<T>{}, x.values[i] & kUpper, y.values[i] & kUpper);
    const uint32_t even =
        LargerHalves(TypeTag<T>{}, x.values[i] << 8 & kUpper, y.values[i] << 8 & kUpper);
    larger.values[i] = odd | even >> 8;
  }
  return std::bit_cast<Pack<T, N>>(larger);
}
#endif

template <typename T, int N>
__device__ inline Pack<T, N> Larger(const Pack<T, N>& a, const Pack<T, N>& b) {
  Pack<T, N> larger;
#pragma unroll
  for (int k = 0; k < N; ++k) larger.values[k] = std::max(a.values[k], b.values[k]);
  return larger;
}

template <typename T, int N>
struct KeepLarger {
  const T* x;
  Pack<T, N>* largest;

  __device__ void operator()(int64_t pack) const {
    *largest = Larger(*largest, PackAt<T, N>(x, pack));
  }
};

// Compares the stored numbers, so both sides must have the same scale and type.
template <typename T, int N>
struct MaxPoolNumbers {
  PooledImage<N> image;
  const T* x;
  T* y;

  __device__ void operator()(int64_t pack) const {
    Pack<T, N> largest;
#pragma unroll
    for (int k = 0; k < N; ++k) largest.values[k] = std::numeric_limits<T>::lowest();
    image.ForWindow(pack, KeepLarger<T, N>{x, &largest});
    reinterpret_cast<Pack<T, N>*>(y)[pack] = largest;
  }
};

template <typename T, int N>
struct AddNumbers {
  const T* x;
  int32_t* sums;

  __device__ void operator()(int64_t pack) const {
    const Pack<T, N> numbers = PackAt<T, N>(x, pack);
#pragma unroll
    for (int k = 0; k < N; ++k) sums[k] += numbers.values[k];
  }
};

template <typename From, typename To, int N>
struct AvePoolNumbers {
  PooledImage<N> image;
  float scale;  // of x in units of y's scale
  const From* x;
  To* y;

  __device__ void operator()(int64_t pack) const {
    int32_t sums[N] = {};
    const int64_t size = image.ForWindow(pack, AddNumbers<From, N>{x, sums});
    const float factor = scale / static_cast<float>(size);
    float values[N];
#pragma unroll
    for (int k = 0; k < N; ++k) values[k] = static_cast<float>(sums[k]);
    StoreNumbers(values, factor, y, pack);
  }
};

// Calls fn(TypeTag<T>{}) with the 8-bit type.
template <typename Fn>
void VisitData(DType dtype, const Fn& fn) {
  dtype == DType::kUInt8 ? fn(TypeTag<uint8_t>{}) : fn(TypeTag<int8_t>{});
}

void MaxPool8Bit(const ops::MaxPool& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  VisitData(x.dtype, [&]<typename T>(TypeTag<T>) {
    VisitChannelPacks(y.shape[1], [&]<int N>(std::integral_constant<int, N>) {
      const PooledImage<N> image(op.geometry, x, y);
      ForEach(ctx, y.count() / N, MaxPoolNumbers<T, N>{image, x.as<const T>(), y.as<T>()});
    });
  });
}

void AvePool8Bit(const ops::AvePool& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const float scale = ops::ScaleOf(x) / ops::ScaleOf(y);
  VisitData(x.dtype, [&]<typename From>(TypeTag<From>) {
    VisitNumber(y.dtype, [&]<typename To>(TypeTag<To>) {
      VisitChannelPacks(y.shape[1], [&]<int N>(std::integral_constant<int, N>) {
        const PooledImage<N> image(op.geometry, x, y);
        ForEach(ctx, y.count() / N,
                AvePoolNumbers<From, To, N>{image, scale, x.as<const From>(), y.as<To>()});
      });
    });
  });
}

std::optional<Refusal> RefusePooled(const KernelRequest& request) {
  if (request.inputs[0].layout != Layout::kChannelsLast ||
      request.outputs[0].layout != Layout::kChannelsLast)
    return Refusal{"only tensors with channels last"};
  if (!Is8Bit(request.inputs[0].dtype)) return Refusal{"only 8-bit numbers"};
  if (request.outputs[0].count() > kMostDividend)
    return Refusal{StrCat("at most ", kMostDividend, " elements")};
  return std::nullopt;
}

KernelOrRefusal MakeMaxPool8Bit(const ops::MaxPool& op, const KernelRequest& request) {
  const OperandDesc &x = request.inputs[0], &y = request.outputs[0];
  if (const auto refusal = RefusePooled(request)) return *refusal;
  if (request.outputs.size() > 1 && request.outputs[1].present) return Refusal{"no mask"};
  if (x.dtype != y.dtype || x.scale != y.scale)
    return Refusal{"only 8-bit numbers of one type and scale"};
  return Kernel{"", [op](const KernelContext& ctx) { MaxPool8Bit(op, ctx); }};
}

KernelOrRefusal MakeAvePool8Bit(const ops::AvePool& op, const KernelRequest& request) {
  if (const auto refusal = RefusePooled(request)) return *refusal;
  return Kernel{"", [op](const KernelContext& ctx) { AvePool8Bit(op, ctx); }};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::MaxPool, "max-pool-int8", KernelRank::kBest,
                              MakeMaxPool8Bit, ops::Int8Traits());
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::AvePool, "ave-pool-int8", KernelRank::kBest,
                              MakeAvePool8Bit, ops::Int8AverageTraits());

}  // namespace
}  // namespace caffe::cuda
