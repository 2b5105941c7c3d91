// Pooling of channels-last images: the inner loop runs over channels and vectorises. Sums are float
// whatever the images' type.
#include <limits>

#include "caffe/cpu/kernels/channels_last.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/ops/pool.hpp"

namespace caffe::cpu {
namespace {

template <typename T>
CAFFE_CPU_CLONES void MaxStep(const T* x, float where, T* y, float* mask, int64_t channels) {
  for (int64_t c = 0; c < channels; ++c) {
    const bool wins = static_cast<float>(x[c]) > static_cast<float>(y[c]);
    y[c] = wins ? x[c] : y[c];
    mask[c] = wins ? where : mask[c];
  }
}
template <typename T>
CAFFE_CPU_CLONES void MaxStep(const T* x, T* y, int64_t channels) {
  for (int64_t c = 0; c < channels; ++c)
    y[c] = static_cast<float>(x[c]) > static_cast<float>(y[c]) ? x[c] : y[c];
}
template <typename T>
CAFFE_CPU_CLONES void AddStep(const T* x, float factor, float* sums, int64_t channels) {
  for (int64_t c = 0; c < channels; ++c) sums[c] += factor * static_cast<float>(x[c]);
}
// sums += dy where this position was the winner.
template <typename T>
CAFFE_CPU_CLONES void AddWinners(const float* mask, float where, const T* dy, float* sums,
                                 int64_t channels) {
  for (int64_t c = 0; c < channels; ++c)
    sums[c] += mask[c] == where ? static_cast<float>(dy[c]) : 0.0f;
}
template <typename T>
CAFFE_CPU_CLONES void Store(const float* sums, T* y, int64_t channels) {
  for (int64_t c = 0; c < channels; ++c) y[c] = T(sums[c]);
}

// The lowest number of each type, which loses against any other.
template <typename T>
T Lowest() {
  if constexpr (std::is_same_v<T, float>) return -std::numeric_limits<float>::max();
  if constexpr (std::is_same_v<T, float16>) return T(-65504.0f);
  return T(-3.3895314e38f);
}

// Calls fn(n, h) for each row of each image, over threads.
template <typename Fn>
void ForEachRow(const Shape& shape, const Fn& fn) {
  ParallelFor(shape[0] * shape[2], 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) fn(row / shape[2], row % shape[2]);
  });
}

template <typename T>
void MaxPool(const ops::MaxPool& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const int64_t channels = x.shape[1], height = x.shape[2], width = x.shape[3];
  float* masks = ctx.has_output(1) ? ctx.output(1).as<float>() : nullptr;
  ForEachRow(y.shape, [&](int64_t n, int64_t oh) {
    const ops::PoolWindow rows = ops::WindowAt(op.geometry, 0, height, oh);
    for (int64_t ow = 0; ow < y.shape[3]; ++ow) {
      const ops::PoolWindow columns = ops::WindowAt(op.geometry, 1, width, ow);
      const int64_t at = ((n * y.shape[2] + oh) * y.shape[3] + ow) * channels;
      T* best = y.as<T>() + at;
      std::fill_n(best, channels, Lowest<T>());
      if (masks != nullptr) std::fill_n(masks + at, channels, -1.0f);
      for (int64_t h = rows.begin; h < rows.end; ++h) {
        for (int64_t w = columns.begin; w < columns.end; ++w) {
          const T* pixel = x.as<const T>() + ((n * height + h) * width + w) * channels;
          if (masks == nullptr) {
            MaxStep(pixel, best, channels);
          } else {
            MaxStep(pixel, static_cast<float>(h * width + w), best, masks + at, channels);
          }
        }
      }
    }
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

// dx of each pixel is the sum of what the windows that cover it give: add(offset in dy, channels,
// position in the image, size of the window, sums).
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
          const int64_t row_size = ops::WindowAt(geometry, 0, height, oh).size;
          for (int64_t ow = columns.begin; ow < columns.end; ++ow) {
            const int64_t at = ((n * dy.shape[2] + oh) * dy.shape[3] + ow) * channels + first;
            const int64_t size = row_size * ops::WindowAt(geometry, 1, width, ow).size;
            add(at, count, h * width + w, size, sums);
          }
        }
        Store(sums, pixel + first, count);
      });
    }
  });
}

template <typename T>
void MaxPoolGrad(const ops::MaxPoolGrad& op, const KernelContext& ctx) {
  const float* mask = ctx.input(0).as<const float>();
  const T* dy = ctx.input(1).as<const T>();
  GatherFromWindows<T>(op.geometry, ctx.input(1), ctx,
                       [&](int64_t at, int64_t channels, int64_t where, int64_t, float* sums) {
                         AddWinners(mask + at, static_cast<float>(where), dy + at, sums, channels);
                       });
}

template <typename T>
void AvePoolGrad(const ops::AvePoolGrad& op, const KernelContext& ctx) {
  const T* dy = ctx.input(0).as<const T>();
  GatherFromWindows<T>(op.geometry, ctx.input(0), ctx,
                       [&](int64_t at, int64_t channels, int64_t, int64_t size, float* sums) {
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
KernelOrRefusal MakeChannelsLast(const Op& op, const KernelRequest& request) {
  if (const auto refusal = RefuseUnlessChannelsLast(request)) return *refusal;
  const DType type = request.outputs[0].dtype;
  return Kernel{"", [op, type](const KernelContext& ctx) {
                  VisitNarrow(type, [&](auto tag) { kRun(tag, op, ctx); });
                }};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::MaxPool, "max-pool-channels-last",
                              KernelRank::kGood, (MakeChannelsLast<ops::MaxPool, kMaxPool>),
                              ChannelsLastTraits());
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::MaxPoolGrad, "max-pool-grad-channels-last",
                              KernelRank::kGood, (MakeChannelsLast<ops::MaxPoolGrad, kMaxPoolGrad>),
                              ChannelsLastTraits());
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::AvePool, "ave-pool-channels-last",
                              KernelRank::kGood, (MakeChannelsLast<ops::AvePool, kAvePool>),
                              ChannelsLastTraits());
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::AvePoolGrad, "ave-pool-grad-channels-last",
                              KernelRank::kGood, (MakeChannelsLast<ops::AvePoolGrad, kAvePoolGrad>),
                              ChannelsLastTraits());

}  // namespace
}  // namespace caffe::cpu
