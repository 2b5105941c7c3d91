// Pooling of channels-last images: the inner loop runs over channels and vectorises. Sums are float
// whatever the images' type.
#include <limits>
#include <type_traits>

#include "caffe/cpu/kernels/channels_last.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/ops/pool.hpp"

namespace caffe::cpu {
namespace {

// What values of T are compared by. NaN is above nothing; the lowest finite number is where a
// maximum begins, so that nothing is below it either.
template <typename T>
struct Order {
  using Key = float;
  static Key KeyOf(float x) { return x; }
  static float ValueOf(Key key) { return key; }
  static constexpr Key kLowest = -std::numeric_limits<float>::max();
};
// Sign and magnitude as a whole number, of which a vector holds twice as many as of floats.
template <typename T>
requires(sizeof(T) == 2) struct Order<T> {
  using Key = int16_t;
  static constexpr int16_t kInfinity = std::is_same_v<T, float16> ? 0x7c00 : 0x7f80;
  static constexpr Key kLowest = -(kInfinity - 1);

  static Key KeyOf(T x) {
    const auto bits = static_cast<int16_t>(x.bits);
    const auto magnitude = static_cast<int16_t>(bits & 0x7fff);
    const auto key = static_cast<Key>(bits < 0 ? -magnitude : magnitude);
    return magnitude > kInfinity ? std::numeric_limits<Key>::min() : key;
  }
  static T ValueOf(Key key) {
    T value;
    value.bits = static_cast<uint16_t>(key < 0 ? 0x8000 | -key : key);
    return value;
  }
};

// Winners, counted in a type as wide as the keys where their numbers are small.
template <typename T, typename M>
using Place = std::conditional_t<sizeof(T) == 2 && sizeof(M) == 1, int16_t, int32_t>;

template <typename T, typename P>
CAFFE_CPU_CLONES void MaxStep(const T* x, P where, typename Order<T>::Key* best, P* winners,
                              int64_t channels) {
  for (int64_t c = 0; c < channels; ++c) {
    const auto key = Order<T>::KeyOf(x[c]);
    const bool wins = key > best[c];
    best[c] = wins ? key : best[c];
    winners[c] = wins ? where : winners[c];
  }
}
template <typename T>
CAFFE_CPU_CLONES void MaxStep(const T* x, typename Order<T>::Key* best, int64_t channels) {
  for (int64_t c = 0; c < channels; ++c) {
    const auto key = Order<T>::KeyOf(x[c]);
    best[c] = key > best[c] ? key : best[c];
  }
}
template <typename T>
CAFFE_CPU_CLONES void StoreBest(const typename Order<T>::Key* best, T* y, int64_t channels) {
  for (int64_t c = 0; c < channels; ++c) y[c] = Order<T>::ValueOf(best[c]);
}
template <typename P, typename M>
CAFFE_CPU_CLONES void StoreWinners(const P* winners, M* mask, int64_t channels) {
  for (int64_t c = 0; c < channels; ++c) mask[c] = static_cast<M>(winners[c]);
}
template <typename T>
CAFFE_CPU_CLONES void AddStep(const T* x, float factor, float* sums, int64_t channels) {
  for (int64_t c = 0; c < channels; ++c) sums[c] += factor * static_cast<float>(x[c]);
}
// sums += dy where this position was the winner.
template <typename T, typename M>
CAFFE_CPU_CLONES void AddWinners(const M* mask, M where, const T* dy, float* sums,
                                 int64_t channels) {
  for (int64_t c = 0; c < channels; ++c)
    sums[c] += mask[c] == where ? static_cast<float>(dy[c]) : 0.0f;
}
template <typename T>
CAFFE_CPU_CLONES void Store(const float* sums, T* y, int64_t channels) {
  for (int64_t c = 0; c < channels; ++c) y[c] = T(sums[c]);
}

// Calls fn(n, h) for each row of each image, over threads.
template <typename Fn>
void ForEachRow(const Shape& shape, const Fn& fn) {
  ParallelFor(shape[0] * shape[2], 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) fn(row / shape[2], row % shape[2]);
  });
}

// Calls fn(TypeTag<M>{}) with the type of a mask.
template <typename Fn>
void VisitMask(DType dtype, const Fn& fn) {
  if (dtype == DType::kUInt8) return fn(TypeTag<uint8_t>{});
  CAFFE_ASSERT(dtype == DType::kFloat, "no mask of ", Name(dtype));
  fn(TypeTag<float>{});
}

// Some channels of one window; `mask` is null where nobody wants one.
template <typename T, typename M>
void MaxOfWindow(const T* image, int64_t channels, const ops::MaskCode& code, int64_t oh,
                 int64_t ow, const ops::PoolWindow& rows, const ops::PoolWindow& columns,
                 int64_t count, T* y, M* mask) {
  using P = Place<T, M>;
  typename Order<T>::Key best[kChannelBlock];
  P winners[kChannelBlock];
  std::fill_n(best, count, Order<T>::kLowest);
  if (mask != nullptr) std::fill_n(winners, count, static_cast<P>(code.none()));
  for (int64_t h = rows.begin; h < rows.end; ++h) {
    for (int64_t w = columns.begin; w < columns.end; ++w) {
      const T* pixel = image + (h * code.width + w) * channels;
      if (mask == nullptr) {
        MaxStep(pixel, best, count);
      } else {
        MaxStep(pixel, static_cast<P>(code.At(oh, ow, h, w)), best, winners, count);
      }
    }
  }
  StoreBest(best, y, count);
  if (mask != nullptr) StoreWinners(winners, mask, count);
}

// `masks` is null where nobody wants one.
template <typename T, typename M>
void MaxPool(const ops::MaxPool& op, const TensorView& x, const TensorView& y, M* masks) {
  const int64_t channels = x.shape[1], height = x.shape[2], width = x.shape[3];
  const ops::MaskCode code(op.geometry, width, kDTypeOf<M>);
  ForEachRow(y.shape, [&](int64_t n, int64_t oh) {
    const ops::PoolWindow rows = ops::WindowAt(op.geometry, 0, height, oh);
    for (int64_t ow = 0; ow < y.shape[3]; ++ow) {
      const ops::PoolWindow columns = ops::WindowAt(op.geometry, 1, width, ow);
      const int64_t pixel = ((n * y.shape[2] + oh) * y.shape[3] + ow) * channels;
      ForEachChannelBlock(channels, [&](int64_t first, int64_t count) {
        const int64_t at = pixel + first;
        MaxOfWindow(x.as<const T>() + n * height * width * channels + first, channels, code, oh, ow,
                    rows, columns, count, y.as<T>() + at, masks == nullptr ? masks : masks + at);
      });
    }
  });
}

template <typename T>
void MaxPool(const ops::MaxPool& op, const KernelContext& ctx) {
  if (!ctx.has_output(1)) {
    MaxPool<T, float>(op, ctx.input(0), ctx.output(0), nullptr);
    return;
  }
  VisitMask(ctx.output(1).dtype, [&]<typename M>(TypeTag<M>) {
    MaxPool<T, M>(op, ctx.input(0), ctx.output(0), ctx.output(1).as<M>());
  });
}

template <typename T>
void AvePool(const ops::AvePool& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const int64_t channels = x.shape[1], height = x.shape[2], width = x.shape[3];
  ForEachRow(y.shape, [&](int64_t n, int64_t oh) {
    const ops::PoolWindow rows = ops::WindowAt(op.geometry, 0, height, oh);
    for (int64_t ow = 0; ow < y.shape[3]; ++ow) {
      const ops::PoolWindow columns = ops::WindowAt(op.geometry, 1, width, ow);
      const float share = 1.0f / static_cast<float>(rows.size * columns.size);
      const int64_t at = ((n * y.shape[2] + oh) * y.shape[3] + ow) * channels;
      ForEachChannelBlock(channels, [&](int64_t first, int64_t count) {
        float sums[kChannelBlock] = {};
        for (int64_t h = rows.begin; h < rows.end; ++h) {
          for (int64_t w = columns.begin; w < columns.end; ++w) {
            const int64_t pixel = ((n * height + h) * width + w) * channels;
            AddStep(x.as<const T>() + pixel + first, share, sums, count);
          }
        }
        Store(sums, y.as<T>() + at + first, count);
      });
    }
  });
}

// Output positions [begin, end) along one axis whose windows may cover input position `at`.
struct Covering {
  int64_t begin = 0, end = 0;

  Covering(const ops::PoolGeometry& geometry, int axis, int64_t outputs, int64_t at) {
    const int64_t last = at + geometry.pad[axis], first = last - geometry.kernel[axis] + 1;
    begin = first <= 0 ? 0 : (first + geometry.stride[axis] - 1) / geometry.stride[axis];
    end = std::min(outputs, last / geometry.stride[axis] + 1);
  }
};

// A window that covers a pixel.
struct Cover {
  int64_t oh, ow;  // whose it is
  int64_t h, w;    // the pixel
};

// dx of each pixel is the sum of what the windows that cover it give: add(offset in dy, channels,
// Cover, sums).
template <typename T, typename Fn>
void GatherFromWindows(const ops::PoolGeometry& geometry, const TensorView& dy,
                       const KernelContext& ctx, const Fn& add) {
  const TensorView& dx = ctx.output(0);
  const int64_t channels = dx.shape[1], height = dx.shape[2], width = dx.shape[3];
  ForEachRow(dx.shape, [&](int64_t n, int64_t h) {
    const Covering rows(geometry, 0, dy.shape[2], h);
    for (int64_t w = 0; w < width; ++w) {
      const Covering columns(geometry, 1, dy.shape[3], w);
      T* const pixel = dx.as<T>() + ((n * height + h) * width + w) * channels;
      ForEachChannelBlock(channels, [&](int64_t first, int64_t count) {
        float sums[kChannelBlock] = {};
        for (int64_t oh = rows.begin; oh < rows.end; ++oh) {
          for (int64_t ow = columns.begin; ow < columns.end; ++ow) {
            const int64_t at = ((n * dy.shape[2] + oh) * dy.shape[3] + ow) * channels + first;
            add(at, count, Cover{oh, ow, h, w}, sums);
          }
        }
        Store(sums, pixel + first, count);
      });
    }
  });
}

template <typename T>
void MaxPoolGrad(const ops::MaxPoolGrad& op, const KernelContext& ctx) {
  const TensorView& mask = ctx.input(0);
  const T* dy = ctx.input(1).as<const T>();
  const ops::MaskCode code(op.geometry, ctx.output(0).shape[3], mask.dtype);
  VisitMask(mask.dtype, [&]<typename M>(TypeTag<M>) {
    GatherFromWindows<T>(op.geometry, ctx.input(1), ctx,
                         [&](int64_t at, int64_t channels, const Cover& cover, float* sums) {
                           const int where = code.At(cover.oh, cover.ow, cover.h, cover.w);
                           AddWinners(mask.as<const M>() + at, static_cast<M>(where), dy + at, sums,
                                      channels);
                         });
  });
}

template <typename T>
void AvePoolGrad(const ops::AvePoolGrad& op, const KernelContext& ctx) {
  const T* dy = ctx.input(0).as<const T>();
  const int64_t height = ctx.output(0).shape[2], width = ctx.output(0).shape[3];
  GatherFromWindows<T>(op.geometry, ctx.input(0), ctx,
                       [&](int64_t at, int64_t channels, const Cover& cover, float* sums) {
                         const int64_t size = ops::WindowAt(op.geometry, 0, height, cover.oh).size *
                                              ops::WindowAt(op.geometry, 1, width, cover.ow).size;
                         AddStep(dy + at, 1.0f / static_cast<float>(size), sums, channels);
                       });
}

constexpr auto kMaxPool = []<typename T>(TypeTag<T>, const auto& op, const KernelContext& ctx) {
  MaxPool<T>(op, ctx);
};
constexpr auto kMaxPoolGrad = []<typename T>(TypeTag<T>, const auto& op, const KernelContext& ctx) {
  MaxPoolGrad<T>(op, ctx);
};
constexpr auto kAvePool = []<typename T>(TypeTag<T>, const auto& op, const KernelContext& ctx) {
  AvePool<T>(op, ctx);
};
constexpr auto kAvePoolGrad = []<typename T>(TypeTag<T>, const auto& op, const KernelContext& ctx) {
  AvePoolGrad<T>(op, ctx);
};

template <typename Op, const auto& kRun>
KernelOrRefusal MakePoolChannelsLast(const Op& op, const KernelRequest& request) {
  if (const auto refusal = RefuseUnlessChannelsLast(request)) return *refusal;
  const DType type = request.outputs[0].dtype;
  return Kernel{"", [op, type](const KernelContext& ctx) {
                  VisitNarrow(type, [&](auto tag) { kRun(tag, op, ctx); });
                }};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::MaxPool, "max-pool-channels-last",
                              KernelRank::kGood, (MakePoolChannelsLast<ops::MaxPool, kMaxPool>),
                              ChannelsLastTraits());
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::MaxPoolGrad, "max-pool-grad-channels-last",
                              KernelRank::kGood,
                              (MakePoolChannelsLast<ops::MaxPoolGrad, kMaxPoolGrad>),
                              ChannelsLastTraits());
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::AvePool, "ave-pool-channels-last",
                              KernelRank::kGood, (MakePoolChannelsLast<ops::AvePool, kAvePool>),
                              ChannelsLastTraits());
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::AvePoolGrad, "ave-pool-grad-channels-last",
                              KernelRank::kGood,
                              (MakePoolChannelsLast<ops::AvePoolGrad, kAvePoolGrad>),
                              ChannelsLastTraits());

}  // namespace
}  // namespace caffe::cpu
