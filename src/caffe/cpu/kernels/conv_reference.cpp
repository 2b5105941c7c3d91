// Convolution by its definition: any number of axes, any type, any layout. The oracle and fallback.
#include <array>

#include "caffe/cpu/kernels/epilogue.hpp"
#include "caffe/cpu/kernels/int8.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// Address arithmetic of one convolution. Spatial positions are flat row-major numbers.
class ConvIndex {
 public:
  ConvIndex(const ops::ConvGeometry& geometry, const TensorView& x, const TensorView& y)
      : geometry_(geometry),
        axes_(geometry.spatial_axes()),
        items(x.shape[0]),
        channels(x.shape[1]),
        outputs(y.shape[1]),
        in_pixels(x.shape.count(2)),
        out_pixels(y.shape.count(2)),
        in_last_(x.layout == Layout::kChannelsLast),
        out_last_(y.layout == Layout::kChannelsLast) {
    taps = 1;
    for (const int64_t extent : geometry.kernel) taps *= extent;
    for (int i = 0; i < axes_; ++i)
      in_extents_[i] = x.shape[2 + i], out_extents_[i] = y.shape[2 + i];
  }

  int64_t X(int64_t n, int64_t c, int64_t p) const {
    return in_last_ ? (n * in_pixels + p) * channels + c : (n * channels + c) * in_pixels + p;
  }
  int64_t Y(int64_t n, int64_t k, int64_t p) const {
    return out_last_ ? (n * out_pixels + p) * outputs + k : (n * outputs + k) * out_pixels + p;
  }

  // The input position that output position `p` reads through `tap`; -1 in the padding.
  int64_t Input(int64_t p, int64_t tap) const {
    int64_t position = 0, scale = 1;
    for (int i = axes_ - 1; i >= 0; --i) {
      const int64_t out = p % out_extents_[i], k = tap % geometry_.kernel[i];
      p /= out_extents_[i];
      tap /= geometry_.kernel[i];
      const int64_t in = out * geometry_.stride[i] - geometry_.pad[i] + k * geometry_.dilation[i];
      if (in < 0 || in >= in_extents_[i]) return -1;
      position += in * scale;
      scale *= in_extents_[i];
    }
    return position;
  }

 private:
  const ops::ConvGeometry& geometry_;
  const int axes_;
  std::array<int64_t, kMaxAxes> in_extents_{}, out_extents_{};

 public:
  const int64_t items, channels, outputs, in_pixels, out_pixels;
  int64_t taps = 1;

 private:
  const bool in_last_, out_last_;
};

void StoreSum(const KernelContext& ctx, int output, int64_t i, double sum) {
  const TensorView& view = ctx.output(output);
  VisitFloat(view.dtype, [&]<typename T>(TypeTag<T>) {
    T& out = view.as<T>()[i];
    out = T(ctx.accumulates(output) ? sum + static_cast<double>(out) : sum);
  });
}

void Conv(const ops::Conv& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(op.kX), &w = ctx.input(op.kW), &y = ctx.output(0);
  const ConvIndex at(op.geometry, x, y);
  const int64_t per_group = at.channels / op.geometry.group;
  const int64_t outputs_per_group = at.outputs / op.geometry.group;
  VisitFloat(x.dtype, [&]<typename T>(TypeTag<T>) {
    using A = Accum<T>;
    ParallelFor(at.items * at.outputs, 1, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        const int64_t n = plane / at.outputs, k = plane % at.outputs;
        const int64_t first = k / outputs_per_group * per_group;
        for (int64_t p = 0; p < at.out_pixels; ++p) {
          A sum =
              ctx.has_input(op.kBias) ? static_cast<A>(ElementOf(ctx.input(op.kBias), k)) : A(0);
          for (int64_t tap = 0; tap < at.taps; ++tap) {
            const int64_t position = at.Input(p, tap);
            if (position < 0) continue;
            for (int64_t c = 0; c < per_group; ++c) {
              sum += static_cast<A>(x.as<const T>()[at.X(n, first + c, position)]) *
                     static_cast<A>(w.as<const T>()[(k * per_group + c) * at.taps + tap]);
            }
          }
          const int64_t element = at.Y(n, k, p);
          y.as<T>()[element] = T(ApplyEpilogue(ctx, op.epilogue, k, element, sum));
        }
      }
    });
  });
}

// Of 8-bit data, with weights that are quantised here.
void ConvNumbers(const ops::Conv& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(op.kX), &w = ctx.input(op.kW), &y = ctx.output(0);
  const ConvIndex at(op.geometry, x, y);
  const int64_t per_group = at.channels / op.geometry.group, row = per_group * at.taps;
  const auto convolve = [&]<typename T>(TypeTag<T>, int64_t k) {
    const int64_t first = k / (at.outputs / op.geometry.group) * per_group;
    std::vector<int8_t> numbers(row);
    const float scale = QuantizeRow(w.as<const float>() + k * row, row, 1, numbers.data());
    const float factor = ChannelFactor(x.scale, scale, 1);
    const auto bias = static_cast<float>(ElementOr(ctx, op.kBias, k, 0));
    for (int64_t n = 0; n < at.items; ++n) {
      for (int64_t p = 0; p < at.out_pixels; ++p) {
        int32_t sum = 0;
        for (int64_t tap = 0; tap < at.taps; ++tap) {
          const int64_t position = at.Input(p, tap);
          if (position < 0) continue;
          for (int64_t c = 0; c < per_group; ++c)
            sum += x.as<const T>()[at.X(n, first + c, position)] * numbers[c * at.taps + tap];
        }
        const float value = static_cast<float>(sum) * factor + bias;
        const int64_t element = at.Y(n, k, p);
        StoreNumber(y, element, ApplyEpilogue(ctx, op.epilogue, k, element, value));
      }
    }
  };
  ParallelFor(at.outputs, 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k)
      x.dtype == DType::kUInt8 ? convolve(TypeTag<uint8_t>{}, k) : convolve(TypeTag<int8_t>{}, k);
  });
}

KernelOrRefusal MakeConvNumbers(const ops::Conv& op, const KernelRequest&) {
  return Kernel{"", [op](const KernelContext& ctx) { ConvNumbers(op, ctx); }};
}

void ConvGradData(const ops::ConvGradData& op, const KernelContext& ctx) {
  const TensorView &dy = ctx.input(0), &w = ctx.input(1), &dx = ctx.output(0);
  const ConvIndex at(op.geometry, dx, dy);
  const int64_t per_group = at.channels / op.geometry.group;
  const int64_t outputs_per_group = at.outputs / op.geometry.group;
  VisitFloat(dx.dtype, [&]<typename T>(TypeTag<T>) {
    using A = Accum<T>;
    ParallelFor(at.items * at.channels, 1, [&](int64_t begin, int64_t end) {
      std::vector<A> sums(at.in_pixels);
      for (int64_t plane = begin; plane < end; ++plane) {
        const int64_t n = plane / at.channels, c = plane % at.channels, group = c / per_group;
        std::fill(sums.begin(), sums.end(), A(0));
        for (int64_t p = 0; p < at.out_pixels; ++p) {
          for (int64_t tap = 0; tap < at.taps; ++tap) {
            const int64_t position = at.Input(p, tap);
            if (position < 0) continue;
            for (int64_t k = group * outputs_per_group; k < (group + 1) * outputs_per_group; ++k) {
              sums[position] +=
                  static_cast<A>(dy.as<const T>()[at.Y(n, k, p)]) *
                  static_cast<A>(w.as<const T>()[(k * per_group + c % per_group) * at.taps + tap]);
            }
          }
        }
        for (int64_t p = 0; p < at.in_pixels; ++p) {
          const int64_t element = at.X(n, c, p);
          dx.as<T>()[element] = T(ApplyEpilogue(ctx, op.epilogue, c, element, sums[p]));
        }
      }
    });
  });
}

void ConvGradWeights(const ops::ConvGradWeights& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &dy = ctx.input(1);
  const ConvIndex at(op.geometry, x, dy);
  const int64_t per_group = at.channels / op.geometry.group;
  const int64_t outputs_per_group = at.outputs / op.geometry.group;
  VisitFloat(x.dtype, [&]<typename T>(TypeTag<T>) {
    ParallelFor(at.outputs, 1, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const int64_t first = k / outputs_per_group * per_group;
        for (int64_t c = 0; ctx.has_output(0) && c < per_group; ++c) {
          for (int64_t tap = 0; tap < at.taps; ++tap) {
            double sum = 0;
            for (int64_t n = 0; n < at.items; ++n) {
              for (int64_t p = 0; p < at.out_pixels; ++p) {
                const int64_t position = at.Input(p, tap);
                if (position < 0) continue;
                sum += static_cast<double>(dy.as<const T>()[at.Y(n, k, p)]) *
                       static_cast<double>(x.as<const T>()[at.X(n, first + c, position)]);
              }
            }
            StoreSum(ctx, 0, (k * per_group + c) * at.taps + tap, sum);
          }
        }
        if (!ctx.has_output(1)) continue;
        double sum = 0;
        for (int64_t n = 0; n < at.items; ++n) {
          for (int64_t p = 0; p < at.out_pixels; ++p)
            sum += static_cast<double>(dy.as<const T>()[at.Y(n, k, p)]);
        }
        StoreSum(ctx, 1, k, sum);
      }
    });
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Conv, Conv, FusesAny);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Conv, "conv-int8-reference",
                              KernelRank::kReference, MakeConvNumbers, Int8Traits(FusesNumbers));
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::ConvGradData, ConvGradData, FusesAny);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::ConvGradWeights, ConvGradWeights);

}  // namespace
}  // namespace caffe::cpu
