// Reference kernels of batch normalization: any type, any layout, sums in double.
#include <cmath>

#include "caffe/cpu/kernels/element.hpp"
#include "caffe/cpu/kernels/epilogue.hpp"
#include "caffe/cpu/kernels/running_statistics.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/ops/norm.hpp"

namespace caffe::cpu {
namespace {

// Elements of channel c are at (o * channels + c) * inner + i.
struct ChannelView {
  int64_t outer = 1, channels = 1, inner = 1;

  explicit ChannelView(const TensorView& x) {
    if (x.shape.num_axes() == 1) {
      inner = x.count();
      return;
    }
    channels = x.shape[1];
    const bool plain = x.layout == Layout::kPlain;
    outer = plain ? x.shape[0] : x.shape[0] * x.shape.count(2);
    inner = plain ? x.shape.count(2) : 1;
  }

  double count() const { return static_cast<double>(outer * inner); }

  template <typename Fn>
  void ForEach(int64_t channel, const Fn& fn) const {
    for (int64_t o = 0; o < outer; ++o) {
      const int64_t row = (o * channels + channel) * inner;
      for (int64_t i = row; i < row + inner; ++i) fn(i);
    }
  }
};

template <typename T>
void Normalise(const KernelContext& ctx, const ChannelView& view, int64_t c, double factor,
               double shift, const ops::Epilogue& epilogue) {
  const T* x = ctx.input(0).as<const T>();
  T* y = ctx.output(0).as<T>();
  view.ForEach(c, [&](int64_t i) {
    y[i] = T(ApplyEpilogue(ctx, epilogue, c, i, static_cast<double>(x[i]) * factor + shift));
  });
}

void BatchNorm(const ops::BatchNorm& op, const KernelContext& ctx) {
  using Norm = ops::BatchNorm;
  const ChannelView view(ctx.input(Norm::kX));
  VisitFloat(ctx.input(Norm::kX).dtype, [&]<typename T>(TypeTag<T>) {
    const T* x = ctx.input(Norm::kX).as<const T>();
    ParallelFor(view.channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        double mean = 0, variance = 0;
        view.ForEach(c, [&](int64_t i) { mean += static_cast<double>(x[i]); });
        mean /= view.count();
        view.ForEach(c, [&](int64_t i) {
          const double deviation = static_cast<double>(x[i]) - mean;
          variance += deviation * deviation;
        });
        variance /= view.count();
        SetElement(ctx.output(Norm::kMean), c, mean);
        SetElement(ctx.output(Norm::kVariance), c, variance);
        const double factor = ElementOr(ctx, Norm::kGamma, c, 1) / std::sqrt(variance + op.eps);
        const double beta = ElementOr(ctx, Norm::kBeta, c, 0);
        Normalise<T>(ctx, view, c, factor, beta - mean * factor, op.epilogue);
      }
    });
  });
  UpdateRunningOf(op, ctx);
}

void BatchNormGrad(const ops::BatchNormGrad& op, const KernelContext& ctx) {
  using Grad = ops::BatchNormGrad;
  const ChannelView view(ctx.input(Grad::kX));
  const auto add = [&](int output, int64_t c, double value) {
    if (!ctx.has_output(output)) return;
    const TensorView& sum = ctx.output(output);
    SetElement(sum, c, ctx.accumulates(output) ? ElementOf(sum, c) + value : value);
  };
  VisitFloat(ctx.input(Grad::kX).dtype, [&]<typename T>(TypeTag<T>) {
    const T* x = ctx.input(Grad::kX).as<const T>();
    const T* dy = ctx.input(Grad::kDy).as<const T>();
    const T* y = ctx.has_input(Grad::kY) ? ctx.input(Grad::kY).as<const T>() : nullptr;
    const auto gradient = [&](int64_t i) {
      const bool is_masked = y != nullptr && !(static_cast<double>(y[i]) > 0);
      return static_cast<double>(dy[i]) * (is_masked ? 0 : 1);
    };
    ParallelFor(view.channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        const double mean = ElementOf(ctx.input(Grad::kMean), c);
        const double inverse = 1 / std::sqrt(ElementOf(ctx.input(Grad::kVariance), c) + op.eps);
        double sum = 0, dot = 0;  // of dy, and of dy times the normalized x
        view.ForEach(c, [&](int64_t i) {
          sum += gradient(i);
          dot += gradient(i) * (static_cast<double>(x[i]) - mean) * inverse;
        });
        if (ctx.has_output(Grad::kDresidual)) {  // first, because dx may overwrite dy
          T* residual = ctx.output(Grad::kDresidual).as<T>();
          view.ForEach(c, [&](int64_t i) { residual[i] = T(gradient(i)); });
        }
        if (ctx.has_output(Grad::kDx)) {
          const double factor = ElementOr(ctx, Grad::kGamma, c, 1) * inverse;
          T* dx = ctx.output(Grad::kDx).as<T>();
          view.ForEach(c, [&](int64_t i) {
            const double normalised = (static_cast<double>(x[i]) - mean) * inverse;
            dx[i] = T(factor * (gradient(i) - (sum + normalised * dot) / view.count()));
          });
        }
        add(Grad::kDgamma, c, dot);
        add(Grad::kDbeta, c, sum);
      }
    });
  });
}

// 1 / factor, or 0 if the factor is 0: statistics that were never updated count as 0.
double InverseFactor(const KernelContext& ctx, int operand) {
  const double value = ElementOr(ctx, operand, 0, 1);
  return value == 0 ? 0 : 1 / value;
}

void BatchNormInference(const ops::BatchNormInference& op, const KernelContext& ctx) {
  using Norm = ops::BatchNormInference;
  const ChannelView view(ctx.input(Norm::kX));
  const double scale = InverseFactor(ctx, Norm::kFactor);
  VisitFloat(ctx.input(Norm::kX).dtype, [&]<typename T>(TypeTag<T>) {
    ParallelFor(view.channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        const double mean = ElementOf(ctx.input(Norm::kMean), c) * scale;
        const double variance = ElementOf(ctx.input(Norm::kVariance), c) * scale;
        const double factor = ElementOr(ctx, Norm::kGamma, c, 1) / std::sqrt(variance + op.eps);
        const double beta = ElementOr(ctx, Norm::kBeta, c, 0);
        Normalise<T>(ctx, view, c, factor, beta - mean * factor, op.epilogue);
      }
    });
  });
}

void BatchNormInferenceGrad(const ops::BatchNormInferenceGrad& op, const KernelContext& ctx) {
  using Grad = ops::BatchNormInferenceGrad;
  const ChannelView view(ctx.input(Grad::kDy));
  const double scale = InverseFactor(ctx, Grad::kFactor);
  VisitFloat(ctx.input(Grad::kDy).dtype, [&]<typename T>(TypeTag<T>) {
    ParallelFor(view.channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        const double variance = ElementOf(ctx.input(Grad::kVariance), c) * scale;
        const double factor = ElementOr(ctx, Grad::kGamma, c, 1) / std::sqrt(variance + op.eps);
        Normalise<T>(ctx, view, c, factor, 0, {});
      }
    });
  });
}

void UpdateRunningStatistics(const ops::UpdateRunningStatistics& op, const KernelContext& ctx) {
  UpdateRunning(op, ctx, ctx.input(0), ctx.input(1), 0);
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::BatchNorm, BatchNorm, FusesAny);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::BatchNormGrad, BatchNormGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::BatchNormInference, BatchNormInference, FusesAny);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::BatchNormInferenceGrad, BatchNormInferenceGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::UpdateRunningStatistics, UpdateRunningStatistics);

}  // namespace
}  // namespace caffe::cpu
