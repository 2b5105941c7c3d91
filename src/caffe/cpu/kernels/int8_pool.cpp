// Pooling of quantized channels-last images; the inner loop over channels is vectorized.
#include <cstring>
#include <limits>

#include "caffe/cpu/kernels/channels_last.hpp"
#include "caffe/cpu/kernels/int8.hpp"
#include "caffe/ops/pool.hpp"

namespace caffe::cpu {
namespace {

// The window of one output pixel.
struct PooledWindow {
  ops::PoolWindow rows, columns;
  int64_t image = 0, at = 0;  // offsets of the image in x, and of the pixel in y
};

template <typename Fn>
void ForEachPooledWindow(const ops::PoolGeometry& geometry, const TensorDesc& x,
                         const TensorDesc& y, const Fn& fn) {
  const int64_t height = y.shape[2], width = y.shape[3], channels = y.shape[1];
  ParallelFor(y.shape[0] * height, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      PooledWindow window;
      window.rows = ops::WindowAt(geometry, 0, x.shape[2], row % height);
      window.image = row / height * x.shape.count(1);
      for (int64_t ow = 0; ow < width; ++ow) {
        window.columns = ops::WindowAt(geometry, 1, x.shape[3], ow);
        window.at = (row * width + ow) * channels;
        fn(window);
      }
    }
  });
}

// Calls fn(pixel) for the pixels of x that a window covers.
template <typename T, typename Fn>
void ForEachPixel(const PooledWindow& window, const TensorView& x, const Fn& fn) {
  const int64_t width = x.shape[3], channels = x.shape[1];
  for (int64_t h = window.rows.begin; h < window.rows.end; ++h) {
    for (int64_t w = window.columns.begin; w < window.columns.end; ++w)
      fn(x.as<const T>() + window.image + (h * width + w) * channels);
  }
}

// As many numbers as an AVX2 register holds: without AVX-512, g++ compares wider vectors element by
// element.
template <typename T>
struct NumbersOf {
  static constexpr int64_t kCount = 32;
  typedef T type __attribute__((vector_size(kCount)));  // NOLINT: `using` takes none
};

// Pixels of a window: `step` elements apart, in rows that are row_step apart.
struct PooledPixels {
  int64_t rows, columns, row_step, step;
};

// The maxima of `count` channels, which stay in a register while the window is read.
template <typename T>
inline CAFFE_FORCE_INLINE void LargestOfBlock(const T* x, const PooledPixels& pixels, size_t count,
                                              T* y) {
  typename NumbersOf<T>::type best{}, pixel{};
  best += std::numeric_limits<T>::lowest();
  for (int64_t h = 0; h < pixels.rows; ++h) {
    for (int64_t w = 0; w < pixels.columns; ++w) {
      std::memcpy(&pixel, x + h * pixels.row_step + w * pixels.step, count);
      best = pixel > best ? pixel : best;
    }
  }
  std::memcpy(y, &best, count);
}
template <typename T>
CAFFE_CPU_CLONES void LargestOfWindow(const T* x, const PooledPixels& pixels, int64_t channels,
                                      T* y) {
  ForEachLanes<NumbersOf<T>::kCount>(channels, [&](int64_t c, int64_t count) CAFFE_FORCE_INLINE {
    LargestOfBlock(x + c, pixels, static_cast<size_t>(count), y + c);
  });
}

template <typename T>
CAFFE_CPU_CLONES void AddNumbers(const T* x, int32_t* sums, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sums[i] += x[i];
}

template <typename T>
CAFFE_CPU_CLONES void StoreSums(const int32_t* sums, float factor, T* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = ToNumber<T>(static_cast<float>(sums[i]) * factor);
}

// Compares the numbers themselves, so both operands must have the same scale and type.
void MaxPoolNumbers(const ops::MaxPool& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const int64_t channels = y.shape[1];
  VisitNumber(y.dtype, [&]<typename T>(TypeTag<T>) {
    CAFFE_ASSERT(sizeof(T) == 1);
    ForEachPooledWindow(op.geometry, x, y, [&](const PooledWindow& window) {
      const ops::PoolWindow &rows = window.rows, &columns = window.columns;
      const int64_t row_step = x.shape[3] * channels;
      const T* const first =
          x.as<const T>() + window.image + rows.begin * row_step + columns.begin * channels;
      LargestOfWindow(first,
                      {rows.end - rows.begin, columns.end - columns.begin, row_step, channels},
                      channels, y.as<T>() + window.at);
    });
  });
}

template <typename From, typename To>
void AvePoolNumbers(const ops::AvePool& op, const TensorView& x, const TensorView& y) {
  const int64_t channels = y.shape[1];
  const float scale = ScaleOf(x) / ScaleOf(y);
  ForEachPooledWindow(op.geometry, x, y, [&](const PooledWindow& window) {
    const float factor = scale / static_cast<float>(window.rows.size * window.columns.size);
    ForEachChannelBlock(channels, [&](int64_t first, int64_t count) {
      int32_t sums[kChannelBlock] = {};
      ForEachPixel<From>(window, x,
                         [&](const From* pixel) { AddNumbers(pixel + first, sums, count); });
      StoreSums(sums, factor, y.as<To>() + window.at + first, count);
    });
  });
}

bool IsChannelsLast(const KernelRequest& request) {
  return request.inputs[0].layout == Layout::kChannelsLast &&
         request.outputs[0].layout == Layout::kChannelsLast;
}

KernelOrRefusal MakeMaxPoolNumbers(const ops::MaxPool& op, const KernelRequest& request) {
  const OperandDesc &x = request.inputs[0], &y = request.outputs[0];
  if (!IsChannelsLast(request)) return Refusal{"only tensors with channels last"};
  if (request.outputs.size() > 1 && request.outputs[1].present) return Refusal{"no mask"};
  if (!Is8Bit(x.dtype) || x.dtype != y.dtype || x.scale != y.scale)
    return Refusal{"only 8-bit numbers of one type and scale"};
  return Kernel{"", [op](const KernelContext& ctx) { MaxPoolNumbers(op, ctx); }};
}

KernelOrRefusal MakeAvePoolNumbers(const ops::AvePool& op, const KernelRequest& request) {
  if (!IsChannelsLast(request)) return Refusal{"only tensors with channels last"};
  if (!Is8Bit(request.inputs[0].dtype)) return Refusal{"only 8-bit numbers"};
  return Kernel{"", [op](const KernelContext& ctx) {
                  const TensorView &x = ctx.input(0), &y = ctx.output(0);
                  VisitNumber(x.dtype, [&]<typename From>(TypeTag<From>) {
                    if constexpr (sizeof(From) == 1) {
                      VisitNumber(y.dtype, [&]<typename To>(TypeTag<To>) {
                        AvePoolNumbers<From, To>(op, x, y);
                      });
                    }
                  });
                }};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::MaxPool, "max-pool-int8", KernelRank::kBest,
                              MakeMaxPoolNumbers, Int8Traits());
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::AvePool, "ave-pool-int8", KernelRank::kBest,
                              MakeAvePoolNumbers, ops::Int8AverageTraits());

}  // namespace
}  // namespace caffe::cpu
