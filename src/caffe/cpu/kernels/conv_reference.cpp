// Convolution by definition: any number of axes, any type, any layout. Test oracle and fallback.
#include <vector>

#include "caffe/cpu/kernels/conv_sums.hpp"
#include "caffe/cpu/kernels/epilogue.hpp"
#include "caffe/cpu/kernels/int8.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

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
  VisitFloat(x.dtype, [&]<typename T>(TypeTag<T>) {
    using A = Accum<T>;
    ParallelFor(at.items * at.outputs, 1, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        const int64_t n = plane / at.outputs, k = plane % at.outputs;
        const A bias =
            ctx.has_input(op.kBias) ? static_cast<A>(ElementOf(ctx.input(op.kBias), k)) : A(0);
        for (int64_t p = 0; p < at.out_pixels; ++p) {
          const int64_t element = at.Y(n, k, p);
          const A sum = ConvSum<T>(at, x, w, n, k, p, bias);
          y.as<T>()[element] = T(ApplyEpilogue(ctx, op.epilogue, k, element, sum));
        }
      }
    });
  });
}

// For 8-bit data; quantizes the weights.
void ConvNumbers(const ops::Conv& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(op.kX), &w = ctx.input(op.kW), &y = ctx.output(0);
  const ConvIndex at(op.geometry, x, y);
  const int64_t row = at.per_group * at.taps;
  const auto convolve = [&]<typename T>(TypeTag<T>, int64_t k) {
    std::vector<int8_t> numbers(row);
    const float scale = QuantizeRow(w.as<const float>() + k * row, row, 1, numbers.data());
    const float factor = ChannelFactor(x.scale, scale, 1);
    const auto bias = static_cast<float>(ElementOr(ctx, op.kBias, k, 0));
    for (int64_t n = 0; n < at.items; ++n) {
      for (int64_t p = 0; p < at.out_pixels; ++p) {
        const int32_t sum = ConvSumOfNumbers<T>(at, x, numbers, n, k, p);
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
  VisitFloat(dx.dtype, [&]<typename T>(TypeTag<T>) {
    using A = Accum<T>;
    ParallelFor(at.items * at.channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        const int64_t n = plane / at.channels, c = plane % at.channels;
        for (int64_t q = 0; q < at.in_pixels; ++q) {
          const int64_t element = at.X(n, c, q);
          const A sum = ConvGradDataSum<T, A>(at, dy, w, n, c, q);
          dx.as<T>()[element] = T(ApplyEpilogue(ctx, op.epilogue, c, element, sum));
        }
      }
    });
  });
}

void ConvGradWeights(const ops::ConvGradWeights& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &dy = ctx.input(1);
  const ConvIndex at(op.geometry, x, dy);
  VisitFloat(x.dtype, [&]<typename T>(TypeTag<T>) {
    ParallelFor(at.outputs, 1, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        for (int64_t c = 0; ctx.has_output(0) && c < at.per_group; ++c) {
          for (int64_t tap = 0; tap < at.taps; ++tap)
            StoreSum(ctx, 0, at.W(k, c, tap), ConvGradWeightSum<T>(at, x, dy, k, c, tap));
        }
        if (ctx.has_output(1)) StoreSum(ctx, 1, k, ConvGradBiasSum<T>(at, dy, k));
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
