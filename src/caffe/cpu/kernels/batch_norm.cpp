// Reference kernels of batch normalisation: any type, any layout, sums in double.
#include <cmath>
#include <limits>

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

double Element(const TensorView& view, int64_t i) {
  return VisitFloat(view.dtype, [&]<typename T>(TypeTag<T>) {
    return static_cast<double>(view.as<const T>()[i]);
  });
}

void Store(const TensorView& view, int64_t i, double value) {
  VisitFloat(view.dtype, [&]<typename T>(TypeTag<T>) { view.as<T>()[i] = T(value); });
}

// gamma, 1 where absent.
double Gamma(const KernelContext& ctx, int operand, int64_t c) {
  return ctx.has_input(operand) ? Element(ctx.input(operand), c) : 1;
}

constexpr int kNoResidual = std::numeric_limits<int>::max();

// `residual` is the number of that operand, which may be absent.
template <typename T>
void Normalise(const KernelContext& ctx, const ChannelView& view, int64_t c, double factor,
               double shift, int residual, bool has_relu) {
  const T* x = ctx.input(0).as<const T>();
  const T* added = ctx.has_input(residual) ? ctx.input(residual).as<const T>() : nullptr;
  T* y = ctx.output(0).as<T>();
  view.ForEach(c, [&](int64_t i) {
    double value = static_cast<double>(x[i]) * factor + shift;
    if (added != nullptr) value += static_cast<double>(added[i]);
    y[i] = T(has_relu && !(value > 0) ? 0.0 : value);
  });
}

void BatchNorm(const ops::BatchNorm& op, const KernelContext& ctx) {
  const ChannelView view(ctx.input(0));
  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    const T* x = ctx.input(0).as<const T>();
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
        Store(ctx.output(1), c, mean);
        Store(ctx.output(2), c, variance);
        const double factor = Gamma(ctx, 1, c) / std::sqrt(variance + op.eps);
        const double beta = ctx.has_input(2) ? Element(ctx.input(2), c) : 0;
        Normalise<T>(ctx, view, c, factor, beta - mean * factor, 3, op.has_relu);
      }
    });
  });
}

void BatchNormGrad(const ops::BatchNormGrad& op, const KernelContext& ctx) {
  const ChannelView view(ctx.input(0));
  const auto add = [&](int output, int64_t c, double value) {
    if (!ctx.has_output(output)) return;
    const TensorView& sum = ctx.output(output);
    Store(sum, c, ctx.accumulates(output) ? Element(sum, c) + value : value);
  };
  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    const T* x = ctx.input(0).as<const T>();
    const T* dy = ctx.input(3).as<const T>();
    const T* y = op.has_relu ? ctx.input(5).as<const T>() : nullptr;
    const auto gradient = [&](int64_t i) {
      return y != nullptr && !(static_cast<double>(y[i]) > 0) ? 0.0 : static_cast<double>(dy[i]);
    };
    ParallelFor(view.channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        const double mean = Element(ctx.input(1), c);
        const double inverse = 1 / std::sqrt(Element(ctx.input(2), c) + op.eps);
        double sum = 0, dot = 0;  // of dy, and of dy with the normalised x
        view.ForEach(c, [&](int64_t i) {
          sum += gradient(i);
          dot += gradient(i) * (static_cast<double>(x[i]) - mean) * inverse;
        });
        if (ctx.has_output(0)) {
          const double factor = Gamma(ctx, 4, c) * inverse;
          T* dx = ctx.output(0).as<T>();
          view.ForEach(c, [&](int64_t i) {
            const double normalised = (static_cast<double>(x[i]) - mean) * inverse;
            dx[i] = T(factor * (gradient(i) - (sum + normalised * dot) / view.count()));
          });
        }
        if (ctx.has_output(3)) {
          T* residual = ctx.output(3).as<T>();
          view.ForEach(c, [&](int64_t i) { residual[i] = T(gradient(i)); });
        }
        add(1, c, dot);
        add(2, c, sum);
      }
    });
  });
}

// 1 / factor, 0 where the factor is 0: statistics that were never updated count as 0.
double InverseFactor(const TensorView& factor) {
  const double value = Element(factor, 0);
  return value == 0 ? 0 : 1 / value;
}

void BatchNormInference(const ops::BatchNormInference& op, const KernelContext& ctx) {
  const ChannelView view(ctx.input(0));
  const double scale = InverseFactor(ctx.input(3));
  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    ParallelFor(view.channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        const double mean = Element(ctx.input(1), c) * scale;
        const double factor =
            Gamma(ctx, 4, c) / std::sqrt(Element(ctx.input(2), c) * scale + op.eps);
        const double beta = ctx.has_input(5) ? Element(ctx.input(5), c) : 0;
        Normalise<T>(ctx, view, c, factor, beta - mean * factor, 6, op.has_relu);
      }
    });
  });
}

void BatchNormInferenceGrad(const ops::BatchNormInferenceGrad& op, const KernelContext& ctx) {
  const ChannelView view(ctx.input(0));
  const double scale = InverseFactor(ctx.input(2));
  VisitFloat(ctx.input(0).dtype, [&]<typename T>(TypeTag<T>) {
    ParallelFor(view.channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        const double factor =
            Gamma(ctx, 3, c) / std::sqrt(Element(ctx.input(1), c) * scale + op.eps);
        Normalise<T>(ctx, view, c, factor, 0, kNoResidual, /*has_relu=*/false);
      }
    });
  });
}

void UpdateRunningStatistics(const ops::UpdateRunningStatistics& op, const KernelContext& ctx) {
  const TensorView &mean = ctx.output(0), &variance = ctx.output(1), &factor = ctx.output(2);
  const double unbias =
      op.count > 1 ? static_cast<double>(op.count) / static_cast<double>(op.count - 1) : 1;
  double keep = op.fraction, take = 1;
  if (!op.decaying_sums) {
    keep = ctx.random.pass == 0 ? 0 : op.fraction;
    take = 1 - keep;
  }
  for (int64_t c = 0; c < mean.count(); ++c) {
    Store(mean, c, keep * Element(mean, c) + take * Element(ctx.input(0), c));
    Store(variance, c, keep * Element(variance, c) + take * unbias * Element(ctx.input(1), c));
  }
  if (op.decaying_sums) Store(factor, 0, op.fraction * Element(factor, 0) + 1);
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::BatchNorm, BatchNorm);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::BatchNormGrad, BatchNormGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::BatchNormInference, BatchNormInference);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::BatchNormInferenceGrad, BatchNormInferenceGrad);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::UpdateRunningStatistics, UpdateRunningStatistics);

}  // namespace
}  // namespace caffe::cpu
