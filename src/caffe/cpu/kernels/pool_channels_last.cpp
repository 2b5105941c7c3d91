// Pooling of channels-last float images: the inner loop runs over channels and vectorises.
#include <limits>

#include "caffe/cpu/kernels/channels_last.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/ops/pool.hpp"

namespace caffe::cpu {
namespace {

CAFFE_CPU_CLONES void MaxStep(const float* x, float where, float* y, float* mask,
                              int64_t channels) {
  for (int64_t c = 0; c < channels; ++c) {
    const bool wins = x[c] > y[c];
    y[c] = wins ? x[c] : y[c];
    mask[c] = wins ? where : mask[c];
  }
}
CAFFE_CPU_CLONES void MaxStep(const float* x, float* y, int64_t channels) {
  for (int64_t c = 0; c < channels; ++c) y[c] = x[c] > y[c] ? x[c] : y[c];
}
CAFFE_CPU_CLONES void AddStep(const float* x, float factor, float* y, int64_t channels) {
  for (int64_t c = 0; c < channels; ++c) y[c] += factor * x[c];
}
// dx += dy where this position was the winner.
CAFFE_CPU_CLONES void AddWinners(const float* mask, float where, const float* dy, float* dx,
                                 int64_t channels) {
  for (int64_t c = 0; c < channels; ++c) dx[c] += mask[c] == where ? dy[c] : 0.0f;
}

// Calls fn(n, oh) over threads.
template <typename Fn>
void ForEachOutputRow(const Shape& shape, const Fn& fn) {
  ParallelFor(shape[0] * shape[2], 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) fn(row / shape[2], row % shape[2]);
  });
}

void MaxPool(const ops::MaxPool& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const int64_t channels = x.shape[1], height = x.shape[2], width = x.shape[3];
  float* masks = ctx.has_output(1) ? ctx.output(1).as<float>() : nullptr;
  ForEachOutputRow(y.shape, [&](int64_t n, int64_t oh) {
    const ops::PoolWindow rows = ops::WindowAt(op.geometry, 0, height, oh);
    for (int64_t ow = 0; ow < y.shape[3]; ++ow) {
      const ops::PoolWindow columns = ops::WindowAt(op.geometry, 1, width, ow);
      const int64_t at = ((n * y.shape[2] + oh) * y.shape[3] + ow) * channels;
      float* best = y.as<float>() + at;
      std::fill_n(best, channels, -std::numeric_limits<float>::max());
      if (masks != nullptr) std::fill_n(masks + at, channels, -1.0f);
      for (int64_t h = rows.begin; h < rows.end; ++h) {
        for (int64_t w = columns.begin; w < columns.end; ++w) {
          const float* pixel = x.as<const float>() + ((n * height + h) * width + w) * channels;
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

// Images are spread over threads, because the windows of neighbouring rows overlap.
template <typename Fn>
void ForEachWindow(const ops::PoolGeometry& geometry, const TensorView& dy, const TensorView& dx,
                   const Fn& fn) {
  const int64_t channels = dx.shape[1], height = dx.shape[2], width = dx.shape[3];
  ParallelFor(dx.shape[0], 1, [&](int64_t begin, int64_t end) {
    std::fill(dx.as<float>() + begin * channels * height * width,
              dx.as<float>() + end * channels * height * width, 0.0f);
    for (int64_t n = begin; n < end; ++n) {
      for (int64_t oh = 0; oh < dy.shape[2]; ++oh) {
        const ops::PoolWindow rows = ops::WindowAt(geometry, 0, height, oh);
        for (int64_t ow = 0; ow < dy.shape[3]; ++ow) {
          const ops::PoolWindow columns = ops::WindowAt(geometry, 1, width, ow);
          const int64_t at = ((n * dy.shape[2] + oh) * dy.shape[3] + ow) * channels;
          for (int64_t h = rows.begin; h < rows.end; ++h) {
            for (int64_t w = columns.begin; w < columns.end; ++w) {
              float* pixel = dx.as<float>() + ((n * height + h) * width + w) * channels;
              fn(at, h * width + w, rows.size * columns.size, pixel);
            }
          }
        }
      }
    }
  });
}

void MaxPoolGrad(const ops::MaxPoolGrad& op, const KernelContext& ctx) {
  const float* mask = ctx.input(0).as<const float>();
  const float* dy = ctx.input(1).as<const float>();
  const int64_t channels = ctx.output(0).shape[1];
  ForEachWindow(op.geometry, ctx.input(1), ctx.output(0),
                [&](int64_t at, int64_t where, int64_t, float* pixel) {
                  AddWinners(mask + at, static_cast<float>(where), dy + at, pixel, channels);
                });
}

void AvePool(const ops::AvePool& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const int64_t channels = x.shape[1], height = x.shape[2], width = x.shape[3];
  ForEachOutputRow(y.shape, [&](int64_t n, int64_t oh) {
    const ops::PoolWindow rows = ops::WindowAt(op.geometry, 0, height, oh);
    for (int64_t ow = 0; ow < y.shape[3]; ++ow) {
      const ops::PoolWindow columns = ops::WindowAt(op.geometry, 1, width, ow);
      float* sum = y.as<float>() + ((n * y.shape[2] + oh) * y.shape[3] + ow) * channels;
      std::fill_n(sum, channels, 0.0f);
      const float share = 1.0f / static_cast<float>(rows.size * columns.size);
      for (int64_t h = rows.begin; h < rows.end; ++h) {
        for (int64_t w = columns.begin; w < columns.end; ++w) {
          AddStep(x.as<const float>() + ((n * height + h) * width + w) * channels, share, sum,
                  channels);
        }
      }
    }
  });
}

void AvePoolGrad(const ops::AvePoolGrad& op, const KernelContext& ctx) {
  const float* dy = ctx.input(0).as<const float>();
  const int64_t channels = ctx.output(0).shape[1];
  ForEachWindow(op.geometry, ctx.input(0), ctx.output(0),
                [&](int64_t at, int64_t, int64_t size, float* pixel) {
                  AddStep(dy + at, 1.0f / static_cast<float>(size), pixel, channels);
                });
}

template <typename Op, void (*kRun)(const Op&, const KernelContext&)>
KernelOrRefusal MakeChannelsLast(const Op& op, const KernelRequest& request) {
  if (!AllFloatChannelsLast(request)) return Refusal{kOnlyFloatChannelsLast};
  return Kernel{"", [op](const KernelContext& ctx) { kRun(op, ctx); }};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::MaxPool, "max-pool-channels-last",
                              KernelRank::kGood, (MakeChannelsLast<ops::MaxPool, MaxPool>));
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::MaxPoolGrad, "max-pool-grad-channels-last",
                              KernelRank::kGood, (MakeChannelsLast<ops::MaxPoolGrad, MaxPoolGrad>));
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::AvePool, "ave-pool-channels-last",
                              KernelRank::kGood, (MakeChannelsLast<ops::AvePool, AvePool>));
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::AvePoolGrad, "ave-pool-grad-channels-last",
                              KernelRank::kGood, (MakeChannelsLast<ops::AvePoolGrad, AvePoolGrad>));

}  // namespace
}  // namespace caffe::cpu
