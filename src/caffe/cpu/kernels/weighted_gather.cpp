#include <algorithm>

#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/arrange.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// Calls fn(places, weights) with the tables of a WeightedGather in their stored types.
template <typename Fn>
void VisitTables(const KernelContext& ctx, const Fn& fn) {
  VisitFloat(ctx.input(1).dtype, [&]<typename P>(TypeTag<P>) {
    VisitFloat(ctx.input(2).dtype, [&]<typename W>(TypeTag<W>) {
      fn(ctx.input(1).as<const P>(), ctx.input(2).as<const W>());
    });
  });
}

void WeightedGather(const ops::WeightedGather& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const ops::AxisView from = ops::AroundAxis(x, op.axis), to = ops::AroundAxis(y, op.axis);
  const int64_t taps = ctx.input(1).shape[1], inner = to.inner;
  constexpr int64_t kBlock = 64;  // number of neighbours that are summed together
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    VisitTables(ctx, [&](const auto* places, const auto* weights) {
      const auto sum_block = [&](int64_t row, int64_t first, int64_t count) {
        const int64_t outer = row / to.extent, output = row % to.extent;
        Accum<T> sums[kBlock];
        std::fill_n(sums, count, Accum<T>(0));
        for (int64_t k = output * taps; k < (output + 1) * taps; ++k) {
          const auto place = static_cast<int64_t>(static_cast<double>(places[k]));
          if (place < 0) break;
          const auto weight = static_cast<Accum<T>>(static_cast<double>(weights[k]));
          const T* source = x.as<const T>() + (outer * from.extent + place) * inner + first;
          for (int64_t i = 0; i < count; ++i) {
            sums[i] += weight * static_cast<Accum<T>>(source[i]);
          }
        }
        T* target = y.as<T>() + row * inner + first;
        for (int64_t i = 0; i < count; ++i) target[i] = T(sums[i]);
      };
      ParallelFor(to.outer * to.extent,
                  std::max<int64_t>(1, kPointwiseGrain / std::max<int64_t>(inner * taps, 1)),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t row = begin; row < end; ++row) {
                      for (int64_t i = 0; i < inner; i += kBlock) {
                        sum_block(row, i, std::min(kBlock, inner - i));
                      }
                    }
                  });
    });
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::WeightedGather, WeightedGather);

}  // namespace
}  // namespace caffe::cpu
