// Batch normalization of channels-last images with batch statistics: two passes over memory.
#include <cmath>

#include "caffe/cpu/kernels/batch_norm_channels_last.hpp"
#include "caffe/cpu/kernels/running_statistics.hpp"
#include "caffe/ops/norm.hpp"

namespace caffe::cpu::channels_last {
namespace {

// Number of rows summed in float before they are added to the double sums.
constexpr int64_t kRowBlock = 32;

// sum += x - shift, squares += (x - shift)^2 for each channel. The shift (the first pixel) keeps
// the squares small, which avoids cancellation in the variance.
template <typename T>
CAFFE_CPU_CLONES void SumRows(const T* x, int64_t rows, int64_t channels, const T* shift,
                              float* sum, float* squares) {
  for (int64_t c = 0; c < channels; ++c) sum[c] = squares[c] = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const T* row = x + r * channels;
    for (int64_t c = 0; c < channels; ++c) {
      const float deviation = FloatAt(row, c) - FloatAt(shift, c);
      sum[c] += deviation;
      squares[c] += deviation * deviation;
    }
  }
}

// Sums of dy (where y > 0, if y is given) and of dy * (x - mean). Stores the masked dy if kKeeps.
template <typename T, bool kHasRelu, bool kKeeps>
CAFFE_CPU_CLONES void SumGradientRows(const T* x, const T* dy, const T* y, int64_t rows,
                                      int64_t channels, const float* mean, float* __restrict sum,
                                      float* __restrict dot, T* __restrict kept) {
  for (int64_t c = 0; c < channels; ++c) sum[c] = dot[c] = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t row = r * channels;
    for (int64_t c = 0; c < channels; ++c) {
      float gradient = FloatAt(dy, row + c);
      if constexpr (kHasRelu) gradient *= FloatAt(y, row + c) > 0 ? 1.0f : 0.0f;  // NaN stays
      if constexpr (kKeeps) kept[row + c] = T(gradient);
      sum[c] += gradient;
      dot[c] += gradient * (FloatAt(x, row + c) - mean[c]);
    }
  }
}

// dx = factor * dy + slope * x + shift.
template <typename T, bool kHasRelu>
CAFFE_CPU_CLONES void GradientRows(const T* x, const T* dy, const T* y, int64_t rows,
                                   int64_t channels, const float* factor, const float* slope,
                                   const float* shift, T* dx) {
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t row = r * channels;
    for (int64_t c = 0; c < channels; ++c) {
      float gradient = FloatAt(dy, row + c);
      if constexpr (kHasRelu) gradient *= FloatAt(y, row + c) > 0 ? 1.0f : 0.0f;  // NaN stays
      dx[row + c] = T(factor[c] * gradient + slope[c] * FloatAt(x, row + c) + shift[c]);
    }
  }
}

template <typename T>
CAFFE_CPU_CLONES void AddTo(const float* x, T* sum, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sum[i] += static_cast<T>(x[i]);
}

// Sums two numbers per channel over all rows: sum_rows(first_row, rows, sums, products) computes
// those of a block. The result is in sums(0)[0, channels) and sums(0)[channels, 2 channels).
template <typename SumFn>
void ReduceRows(const NormWorkspace& space, int64_t rows, const SumFn& sum_rows) {
  const int64_t channels = space.channels;
  std::fill_n(space.doubles, 2 * space.threads * channels, 0.0);
  ParallelFor(space.threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t thread = begin; thread < end; ++thread) {
      double* sums = space.sums(static_cast<int>(thread));
      float* block = space.block(static_cast<int>(thread));
      const int64_t last = rows * (thread + 1) / space.threads;
      for (int64_t row = rows * thread / space.threads; row < last; row += kRowBlock) {
        sum_rows(row, std::min(kRowBlock, last - row), block, block + channels);
        AddTo(block, sums, 2 * channels);
      }
    }
  });
  for (int thread = 1; thread < space.threads; ++thread) {
    for (int64_t i = 0; i < 2 * channels; ++i) space.doubles[i] += space.sums(thread)[i];
  }
}

template <typename T>
void BatchNorm(const ops::BatchNorm& op, int threads, const KernelContext& ctx) {
  using Norm = ops::BatchNorm;
  const TensorView& x = ctx.input(Norm::kX);
  const int64_t channels = x.shape[1], rows = x.count() / channels;
  const NormWorkspace space(ctx.workspace, threads, channels);
  const T* elements = x.as<const T>();
  ReduceRows(space, rows, [&](int64_t row, int64_t count, float* sum, float* squares) {
    SumRows<T>(elements + row * channels, count, channels, elements, sum, squares);
  });
  float *factor = space.coefficient(0), *shift = space.coefficient(1);
  const double* sums = space.sums(0);
  for (int64_t c = 0; c < channels; ++c) {
    const double deviation = sums[c] / static_cast<double>(rows);
    const double mean = deviation + static_cast<double>(FloatAt(elements, c));
    const double square = sums[channels + c] / static_cast<double>(rows) - deviation * deviation;
    const double variance = square < 0 ? 0 : square;  // NaN stays
    ctx.output(Norm::kMean).as<float>()[c] = static_cast<float>(mean);
    ctx.output(Norm::kVariance).as<float>()[c] = static_cast<float>(variance);
    const double scale = ChannelOr(ctx, Norm::kGamma, c, 1) / std::sqrt(variance + op.eps);
    factor[c] = static_cast<float>(scale);
    shift[c] = static_cast<float>(ChannelOr(ctx, Norm::kBeta, c, 0) - mean * scale);
  }
  UpdateRunningOf(op, ctx);
  NormaliseAll<T>(ctx, op.epilogue, factor, shift);
}

// Computes the sums of the gradient's first pass, and dy for the second pass.
template <typename T>
void SumGradient(const NormWorkspace& space, int64_t rows, const KernelContext& ctx) {
  using Grad = ops::BatchNormGrad;
  const int64_t channels = space.channels;
  const T *x = ctx.input(Grad::kX).as<const T>(), *dy = ctx.input(Grad::kDy).as<const T>();
  const bool is_masked = ctx.has_input(Grad::kY), keeps = ctx.has_output(Grad::kDresidual);
  const T* y = is_masked ? ctx.input(Grad::kY).as<const T>() : dy;
  T* kept = keeps ? ctx.output(Grad::kDresidual).as<T>() : nullptr;
  const auto run =
      keeps ? (is_masked ? SumGradientRows<T, true, true> : SumGradientRows<T, false, true>)
            : (is_masked ? SumGradientRows<T, true, false> : SumGradientRows<T, false, false>);
  const float* means = ctx.input(Grad::kMean).as<const float>();
  ReduceRows(space, rows, [&](int64_t row, int64_t count, float* sum, float* dot) {
    const int64_t at = row * channels;
    run(x + at, dy + at, y + at, count, channels, means, sum, dot, keeps ? kept + at : nullptr);
  });
}

template <typename T>
void BatchNormGrad(const ops::BatchNormGrad& op, int threads, const KernelContext& ctx) {
  using Grad = ops::BatchNormGrad;
  const TensorView& x = ctx.input(Grad::kX);
  const int64_t channels = x.shape[1], rows = x.count() / channels;
  const NormWorkspace space(ctx.workspace, threads, channels);
  SumGradient<T>(space, rows, ctx);
  float *factor = space.coefficient(0), *slope = space.coefficient(1),
        *shift = space.coefficient(2);
  const double* sums = space.sums(0);
  const auto store = [&](int output, int64_t c, double value) {
    if (!ctx.has_output(output)) return;
    float& sum = ctx.output(output).as<float>()[c];
    sum = static_cast<float>(ctx.accumulates(output) ? sum + value : value);
  };
  const float *means = ctx.input(Grad::kMean).as<const float>(),
              *variances = ctx.input(Grad::kVariance).as<const float>();
  for (int64_t c = 0; c < channels; ++c) {
    const double inverse = 1 / std::sqrt(static_cast<double>(variances[c]) + op.eps);
    const double sum = sums[c], dot = sums[channels + c] * inverse;
    const double scale = ChannelOr(ctx, Grad::kGamma, c, 1) * inverse;
    const double along_x = -scale * dot * inverse / static_cast<double>(rows);
    factor[c] = static_cast<float>(scale);
    slope[c] = static_cast<float>(along_x);
    shift[c] = static_cast<float>(-scale * sum / static_cast<double>(rows) - along_x * means[c]);
    store(Grad::kDgamma, c, dot);
    store(Grad::kDbeta, c, sum);
  }
  if (!ctx.has_output(Grad::kDx)) return;
  // The residual's gradient is already masked by the ReLU.
  const bool keeps = ctx.has_output(Grad::kDresidual);
  const bool is_masked = ctx.has_input(Grad::kY) && !keeps;
  const T* dy =
      (keeps ? ctx.output(Grad::kDresidual) : ctx.input(Grad::kDy)).template as<const T>();
  const T* y = is_masked ? ctx.input(Grad::kY).as<const T>() : dy;
  T* dx = ctx.output(Grad::kDx).as<T>();
  const auto run = is_masked ? GradientRows<T, true> : GradientRows<T, false>;
  ForRowParts(rows, channels, [&](int64_t begin, int64_t end) {
    const int64_t at = begin * channels;
    run(x.as<const T>() + at, dy + at, y + at, end - begin, channels, factor, slope, shift,
        dx + at);
  });
}

constexpr auto kBatchNorm = []<typename T>(TypeTag<T>, const auto& op, int threads,
                                           const KernelContext& ctx) {
  BatchNorm<T>(op, threads, ctx);
};
constexpr auto kBatchNormGrad = []<typename T>(TypeTag<T>, const auto& op, int threads,
                                               const KernelContext& ctx) {
  BatchNormGrad<T>(op, threads, ctx);
};

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::BatchNorm, "batch-norm-channels-last",
                              KernelRank::kGood, (MakeNorm<ops::BatchNorm, kBatchNorm>),
                              NormTraits());
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::BatchNormGrad, "batch-norm-grad-channels-last",
                              KernelRank::kGood, (MakeNorm<ops::BatchNormGrad, kBatchNormGrad>),
                              NormTraits());

}  // namespace
}  // namespace caffe::cpu::channels_last
