// Pooling in both layouts. Gradients are gathered: each input position sums over the windows that
// contain it, so that no two threads add to one element.
#include <array>
#include <cfloat>

#include "caffe/cuda/kernels/ave_pool_packs.cuh"
#include "caffe/cuda/numbers.cuh"

namespace caffe::cuda {
namespace {

// An image tensor whose elements are visited in memory order, N neighbouring channels at a time if
// it is channels-last (N is 1 otherwise).
template <int N>
struct Image {
  int64_t channels, height, width;
  bool is_plain;

  explicit Image(const TensorDesc& x)
      : channels(x.shape[1]),
        height(x.shape[2]),
        width(x.shape[3]),
        is_plain(x.layout == Layout::kPlain) {}

  struct Place {
    int64_t item, c, h, w;
  };
  __device__ Place At(int64_t pack) const {
    Place p;
    if (is_plain) {
      int64_t rest = Divide(pack, width, &p.w);
      rest = Divide(rest, height, &p.h);
      p.item = Divide(rest, channels, &p.c);
      return p;
    }
    int64_t rest = Divide(pack, channels / N, &p.c);
    p.c *= N;
    rest = Divide(rest, width, &p.w);
    p.item = Divide(rest, height, &p.h);
    return p;
  }
  __device__ int64_t Pack(const Place& p, int64_t h, int64_t w) const {
    const int64_t at = is_plain ? ((p.item * channels + p.c) * height + h) * width + w
                                : ((p.item * height + h) * width + w) * channels + p.c;
    return at / N;
  }
};

// The windows that contain position `at` of an axis: output positions [begin, end).
struct Holders {
  int64_t begin, end;

  __device__ Holders(const ops::PoolGeometry& geometry, int axis, int64_t outputs, int64_t at) {
    const int64_t padded = at + geometry.pad[axis], stride = geometry.stride[axis];
    const int64_t past = padded - geometry.kernel[axis];  // the last window that ends before `at`
    begin = past < 0 ? 0 : Divide(past, stride) + 1;
    end = std::min(Divide(padded, stride) + 1, outputs);
  }
};

// Stores the winners of N neighbours; winners that are bytes are stored together.
template <int N>
__device__ inline void StoreWinners(const Numbers& mask, int64_t pack, const int (&winners)[N]) {
  if (mask.dtype == DType::kUInt8) {
    Pack<uint8_t, N> bytes;
#pragma unroll
    for (int k = 0; k < N; ++k) bytes.values[k] = static_cast<uint8_t>(winners[k]);
    static_cast<Pack<uint8_t, N>*>(mask.data)[pack] = bytes;
    return;
  }
#pragma unroll
  for (int k = 0; k < N; ++k) mask.Set(pack * N + k, static_cast<float>(winners[k]));
}
template <int N>
__device__ inline void LoadWinners(const Numbers& mask, int64_t pack, int (&winners)[N]) {
  if (mask.dtype == DType::kUInt8) {
    const Pack<uint8_t, N> bytes = static_cast<const Pack<uint8_t, N>*>(mask.data)[pack];
#pragma unroll
    for (int k = 0; k < N; ++k) winners[k] = bytes.values[k];
    return;
  }
#pragma unroll
  for (int k = 0; k < N; ++k) winners[k] = static_cast<int>(mask.Get<float>(pack * N + k));
}

template <typename T, int N>
struct MaxPoolForward {
  using A = Accum<T>;
  ops::PoolGeometry geometry;
  Image<N> in, out;
  const T* x;
  T* y;
  Numbers mask;
  ops::MaskCode code;

  __device__ void operator()(int64_t pack) const {
    const auto place = out.At(pack);
    const ops::PoolWindow rows = ops::WindowAt(geometry, 0, in.height, place.h);
    const ops::PoolWindow columns = ops::WindowAt(geometry, 1, in.width, place.w);
    A best[N];
    int winner[N];
#pragma unroll
    for (int k = 0; k < N; ++k) best[k] = -FLT_MAX, winner[k] = code.none();
    for (int64_t h = rows.begin; h < rows.end; ++h) {
      for (int64_t w = columns.begin; w < columns.end; ++w) {
        const Pack<T, N> values = PackAt<T, N>(x, in.Pack(place, h, w));
        const int where = code.At(place.h, place.w, h, w);
#pragma unroll
        for (int k = 0; k < N; ++k) {
          const A value = Wide(values.values[k]);
          if (value > best[k]) best[k] = value, winner[k] = where;
        }
      }
    }
    Pack<T, N> result;
#pragma unroll
    for (int k = 0; k < N; ++k) result.values[k] = T(best[k]);
    if (mask.is_present()) StoreWinners(mask, pack, winner);
    reinterpret_cast<Pack<T, N>*>(y)[pack] = result;
  }
};

template <typename T, int N>
struct MaxPoolBackward {
  using A = Accum<T>;
  ops::PoolGeometry geometry;
  Image<N> in, out;
  Numbers mask;
  ops::MaskCode code;
  const T* dy;
  T* dx;

  __device__ void operator()(int64_t pack) const {
    const auto place = in.At(pack);
    const Holders rows(geometry, 0, out.height, place.h);
    const Holders columns(geometry, 1, out.width, place.w);
    A sums[N] = {};
    for (int64_t h = rows.begin; h < rows.end; ++h) {
      for (int64_t w = columns.begin; w < columns.end; ++w) {
        const int64_t at = out.Pack(place, h, w);
        const Pack<T, N> values = PackAt<T, N>(dy, at);
        const int where = code.At(h, w, place.h, place.w);
        int winners[N];
        LoadWinners(mask, at, winners);
#pragma unroll
        for (int k = 0; k < N; ++k) {
          if (winners[k] == where) sums[k] += Wide(values.values[k]);
        }
      }
    }
    Pack<T, N> result;
#pragma unroll
    for (int k = 0; k < N; ++k) result.values[k] = T(sums[k]);
    reinterpret_cast<Pack<T, N>*>(dx)[pack] = result;
  }
};

template <typename T, int N>
struct AvePoolForward {
  using A = Accum<T>;
  ops::PoolGeometry geometry;
  Image<N> in, out;
  const T* x;
  T* y;

  __device__ void operator()(int64_t pack) const {
    const auto place = out.At(pack);
    const ops::PoolWindow rows = ops::WindowAt(geometry, 0, in.height, place.h);
    const ops::PoolWindow columns = ops::WindowAt(geometry, 1, in.width, place.w);
    A sums[N] = {};
    for (int64_t h = rows.begin; h < rows.end; ++h) {
      for (int64_t w = columns.begin; w < columns.end; ++w) {
        const Pack<T, N> values = PackAt<T, N>(x, in.Pack(place, h, w));
#pragma unroll
        for (int k = 0; k < N; ++k) sums[k] += Wide(values.values[k]);
      }
    }
    const A size = static_cast<A>(rows.size * columns.size);
    Pack<T, N> result;
#pragma unroll
    for (int k = 0; k < N; ++k) result.values[k] = T(sums[k] / size);
    reinterpret_cast<Pack<T, N>*>(y)[pack] = result;
  }
};

template <typename T, int N>
struct AvePoolBackward {
  using A = Accum<T>;
  ops::PoolGeometry geometry;
  Image<N> in, out;
  const T* dy;
  T* dx;

  __device__ void operator()(int64_t pack) const {
    const auto place = in.At(pack);
    const Holders rows(geometry, 0, out.height, place.h);
    const Holders columns(geometry, 1, out.width, place.w);
    A sums[N] = {};
    for (int64_t h = rows.begin; h < rows.end; ++h) {
      const int64_t height = ops::WindowAt(geometry, 0, in.height, h).size;
      for (int64_t w = columns.begin; w < columns.end; ++w) {
        const int64_t width = ops::WindowAt(geometry, 1, in.width, w).size;
        const A share = A(1) / static_cast<A>(height * width);
        const Pack<T, N> values = PackAt<T, N>(dy, out.Pack(place, h, w));
#pragma unroll
        for (int k = 0; k < N; ++k) sums[k] += Wide(values.values[k]) * share;
      }
    }
    Pack<T, N> result;
#pragma unroll
    for (int k = 0; k < N; ++k) result.values[k] = T(sums[k]);
    reinterpret_cast<Pack<T, N>*>(dx)[pack] = result;
  }
};

// Calls run(TypeTag<T>, N): N is 16 bytes of channels for channels-last tensors if that divides
// evenly.
template <typename Fn>
void VisitPooledPacks(const TensorView& a, const TensorView& b, const Fn& run) {
  VisitFloat(a.dtype, [&]<typename T>(TypeTag<T> tag) {
    constexpr int N = static_cast<int>(16 / sizeof(T));
    const bool is_packed = a.layout == Layout::kChannelsLast && b.layout == Layout::kChannelsLast &&
                           a.shape[1] % N == 0 && IsPackAligned<T, N>(a.as<T>()) &&
                           IsPackAligned<T, N>(b.as<T>());
    if (is_packed) {
      run(tag, std::integral_constant<int, N>{});
    } else {
      run(tag, std::integral_constant<int, 1>{});
    }
  });
}

// True if the kernels of max_pool_packs.cuh can be used: square windows, none of them completely
// outside the image, and no mask or one of bytes.
template <int N>
bool FitsPacks(const ops::PoolGeometry& geometry, const TensorView& image, const TensorView& result,
               const Numbers& mask) {
  if (N == 1 || geometry.kernel[0] != geometry.kernel[1]) return false;
  if (mask.data != nullptr && mask.dtype != DType::kUInt8) return false;
  for (int axis = 0; axis < 2; ++axis) {
    const int64_t last = (result.shape[2 + axis] - 1) * geometry.stride[axis] - geometry.pad[axis];
    if (geometry.pad[axis] >= geometry.kernel[axis] || last >= image.shape[2 + axis]) return false;
  }
  return image.count() <= kMostDividend && result.count() <= kMostDividend &&
         IsPackAligned<uint8_t, N>(static_cast<const uint8_t*>(mask.data));
}

void MaxPool(const ops::MaxPool& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const Numbers mask = OutputNumbers(ctx, 1);
  VisitPooledPacks(x, y, [&]<typename T, int N>(TypeTag<T>, std::integral_constant<int, N>) {
    const int64_t size = FitsPacks<N>(op.geometry, x, y, mask) ? op.geometry.kernel[0] : 0;
    auto* const bytes = static_cast<uint8_t*>(mask.data);
    if (size == 2) {
      ForEach(ctx, y.count() / N, MaxPoolPacks<T, N, 2>(op.geometry, x, y, bytes));
    } else if (size == 3 && op.geometry.stride[0] == 1 && op.geometry.stride[1] == 1) {
      const MaxPoolPairs<T, N> body(op.geometry, x, y, bytes);
      ForEach(ctx, body.count(y.shape[0]), body);
    } else if (size == 3) {
      ForEach(ctx, y.count() / N, MaxPoolPacks<T, N, 3>(op.geometry, x, y, bytes));
    } else {
      ForEach(
          ctx, y.count() / N,
          MaxPoolForward<T, N>{op.geometry, Image<N>(x), Image<N>(y), x.as<const T>(), y.as<T>(),
                               mask, ops::MaskCode(op.geometry, x.shape[3], mask.dtype)});
    }
  });
}

template <typename T, int N, int K, int S, int H, int W>
void MaxPoolGradByPacks(const ops::MaxPoolGrad& op, const KernelContext& ctx) {
  const TensorView &dy = ctx.input(1), &dx = ctx.output(0);
  const MaxPoolGradientPacks<T, N, K, S, H, W> body(op.geometry, dx, dy,
                                                    static_cast<const uint8_t*>(ctx.input(0).data));
  ForEach(ctx, body.cells(dx.shape[0]), body);
}

void MaxPoolGrad(const ops::MaxPoolGrad& op, const KernelContext& ctx) {
  const TensorView &dy = ctx.input(1), &dx = ctx.output(0);
  const Numbers mask = InputNumbers(ctx, 0);
  const ops::PoolGeometry& geometry = op.geometry;
  VisitPooledPacks(dx, dy, [&]<typename T, int N>(TypeTag<T>, std::integral_constant<int, N>) {
    const bool fits =
        FitsPacks<N>(geometry, dx, dy, mask) && geometry.stride[0] == geometry.stride[1];
    const int64_t size = fits ? geometry.kernel[0] : 0, stride = geometry.stride[0];
    if (size == 2 && stride == 2) {
      MaxPoolGradByPacks<T, N, 2, 2, 2, 2>(op, ctx);
    } else if (size == 3 && stride == 2) {
      MaxPoolGradByPacks<T, N, 3, 2, 2, 2>(op, ctx);
    } else if (size == 3 && stride == 1) {
      MaxPoolGradByPacks<T, N, 3, 1, 2, 2>(op, ctx);
    } else {
      ForEach(ctx, dx.count() / N,
              MaxPoolBackward<T, N>{geometry, Image<N>(dx), Image<N>(dy), mask,
                                    ops::MaskCode(geometry, dx.shape[3], mask.dtype),
                                    dy.as<const T>(), dx.as<T>()});
    }
  });
}

// True if the kernels of ave_pool_packs.cuh can be used: 32 bits count elements and the positions
// of a window, and the sizes of windows are few.
bool FitsAvePacks(const ops::PoolGeometry& geometry, const TensorView& image,
                  const TensorView& result) {
  constexpr int64_t kMost = 1 << 15;
  return std::max(image.count(), result.count()) <= kMostDividend &&
         std::ranges::max(geometry.kernel) < kMost && std::ranges::max(geometry.pad) < kMost &&
         std::ranges::max(geometry.stride) < kMost &&
         Shares<float>::Fit({geometry, 0, image, result}, {geometry, 1, image, result});
}

// Runs a kernel of ave_pool_packs.cuh for windows of 3x3 with a stride of 1; false for others.
template <typename T, int N, bool kIsGradient>
bool RunPairs(const ops::PoolGeometry& geometry, const KernelContext& ctx) {
  using Pair = std::array<int64_t, 2>;
  if (geometry.kernel != Pair{3, 3} || geometry.stride != Pair{1, 1}) return false;
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const AvePoolPairs<T, N, kIsGradient> body(geometry, x, y);
  ForEach(ctx, body.count(y.shape[0]), body);
  return true;
}

void AvePool(const ops::AvePool& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const ops::PoolGeometry& geometry = op.geometry;
  VisitPooledPacks(x, y, [&]<typename T, int N>(TypeTag<T>, std::integral_constant<int, N>) {
    if constexpr (N > 1) {
      if (FitsAvePacks(geometry, x, y)) {
        if (RunPairs<T, N, false>(geometry, ctx)) return;
        const auto run = [&]<int K>(std::integral_constant<int, K>) {
          ForEach(ctx, y.count() / N, AvePoolPacks<T, N, K>(geometry, x, y));
        };
        const int64_t size = geometry.kernel[0] == geometry.kernel[1] ? geometry.kernel[0] : 0;
        if (size == 2) return run(std::integral_constant<int, 2>{});
        if (size == 3) return run(std::integral_constant<int, 3>{});
        return run(std::integral_constant<int, 0>{});
      }
    }
    ForEach(ctx, y.count() / N,
            AvePoolForward<T, N>{geometry, Image<N>(x), Image<N>(y), x.as<const T>(), y.as<T>()});
  });
}

void AvePoolGrad(const ops::AvePoolGrad& op, const KernelContext& ctx) {
  const TensorView &dy = ctx.input(0), &dx = ctx.output(0);
  const ops::PoolGeometry& geometry = op.geometry;
  VisitPooledPacks(dx, dy, [&]<typename T, int N>(TypeTag<T>, std::integral_constant<int, N>) {
    if constexpr (N > 1) {
      if (FitsAvePacks(geometry, dx, dy)) {
        if (RunPairs<T, N, true>(geometry, ctx)) return;
        const auto run = [&]<int H>(std::integral_constant<int, H>) {
          ForEach(ctx, dx.count() / N, AvePoolGradientPacks<T, N, H>(geometry, dx, dy));
        };
        const int holders = std::max(AveAxis(geometry, 0, dx, dy).holders(),
                                     AveAxis(geometry, 1, dx, dy).holders());
        if (holders == 1) return run(std::integral_constant<int, 1>{});
        if (holders == 2) return run(std::integral_constant<int, 2>{});
      }
    }
    ForEach(
        ctx, dx.count() / N,
        AvePoolBackward<T, N>{geometry, Image<N>(dx), Image<N>(dy), dy.as<const T>(), dx.as<T>()});
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::MaxPool, MaxPool);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::MaxPoolGrad, MaxPoolGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::AvePool, AvePool);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::AvePoolGrad, AvePoolGrad);

}  // namespace
}  // namespace caffe::cuda
