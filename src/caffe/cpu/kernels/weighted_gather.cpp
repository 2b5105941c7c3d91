#include <algorithm>
#include <vector>

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

// Sums rows of neighbours: y[o, e, i] = sum over k of weights[e, k] x[o, places[e, k], i]. The sums
// of an output end before the first place that is negative.
template <typename T, typename P, typename W>
void GatherRows(const ops::AxisView& from, const ops::AxisView& to, int64_t taps, const T* x,
                const P* places, const W* weights, T* y) {
  const int64_t inner = to.inner;
  constexpr int64_t kBlock = 64;  // number of neighbours that are summed together
  const auto sum_block = [&](int64_t row, int64_t first, int64_t count) {
    const int64_t outer = row / to.extent, output = row % to.extent;
    Accum<T> sums[kBlock];
    std::fill_n(sums, count, Accum<T>(0));
    for (int64_t k = output * taps; k < (output + 1) * taps; ++k) {
      const auto place = static_cast<int64_t>(static_cast<double>(places[k]));
      if (place < 0) break;
      const auto weight = static_cast<Accum<T>>(static_cast<double>(weights[k]));
      const T* source = x + (outer * from.extent + place) * inner + first;
      for (int64_t i = 0; i < count; ++i) sums[i] += weight * static_cast<Accum<T>>(source[i]);
    }
    T* target = y + row * inner + first;
    for (int64_t i = 0; i < count; ++i) target[i] = T(sums[i]);
  };
  ParallelFor(to.outer * to.extent,
              std::max<int64_t>(1, kPointwiseGrain / std::max<int64_t>(inner * taps, 1)),
              [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                  for (int64_t i = 0; i < inner; i += kBlock)
                    sum_block(row, i, std::min(kBlock, inner - i));
                }
              });
}

// The tables of some neighbouring outputs, tap by tap.
template <typename A>
struct OutputTables {
  std::vector<int32_t> places;
  std::vector<A> weights;

  // Places after the first negative one are negative, too.
  template <typename P, typename W>
  void Read(int64_t taps, int64_t first, int64_t count, const P* from, const W* weights_of) {
    places.assign(taps * count, -1);
    weights.assign(taps * count, A(0));
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t k = 0; k < taps; ++k) {
        const int64_t at = (first + i) * taps + k;
        const auto place = static_cast<int32_t>(static_cast<double>(from[at]));
        if (place < 0) break;
        places[k * count + i] = place;
        weights[k * count + i] = static_cast<A>(static_cast<double>(weights_of[at]));
      }
    }
  }
};

template <typename T, typename A>
CAFFE_CPU_CLONES void SumTap(const T* x, const int32_t* places, const A* weights, int64_t count,
                             A* sums) {
  for (int64_t i = 0; i < count; ++i) {
    const int32_t place = places[i];
    const A product = weights[i] * static_cast<A>(x[place < 0 ? 0 : place]);
    sums[i] += place < 0 ? A(0) : product;
  }
}

// The same where neighbours along the axis are next to each other (inner is 1): sums of some
// outputs at a time. Their tables are read once for many rows.
template <typename T, typename P, typename W>
void GatherColumns(const ops::AxisView& from, const ops::AxisView& to, int64_t taps, const T* x,
                   const P* places, const W* weights, T* y) {
  using A = Accum<T>;
  constexpr int64_t kOutputs = 256;
  const int64_t blocks = (to.extent + kOutputs - 1) / kOutputs;
  const int64_t grain =
      std::max<int64_t>(1, kPointwiseGrain / (kOutputs * std::max<int64_t>(taps, 1)));
  ParallelFor(blocks * to.outer, grain, [&](int64_t begin, int64_t end) {
    static thread_local OutputTables<A> tables;  // memory that later calls use again
    A sums[kOutputs];
    int64_t read = -1;  // block whose tables were read
    for (int64_t task = begin; task < end; ++task) {
      const int64_t block = task / to.outer, outer = task % to.outer;
      const int64_t first = block * kOutputs, count = std::min(kOutputs, to.extent - first);
      if (block != read) tables.Read(taps, first, count, places, weights);
      read = block;
      std::fill_n(sums, count, A(0));
      for (int64_t k = 0; k < taps; ++k) {
        SumTap(x + outer * from.extent, &tables.places[k * count], &tables.weights[k * count],
               count, sums);
      }
      T* target = y + outer * to.extent + first;
      for (int64_t i = 0; i < count; ++i) target[i] = T(sums[i]);
    }
  });
}

void WeightedGather(const ops::WeightedGather& op, const KernelContext& ctx) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const ops::AxisView from = ops::AroundAxis(x, op.axis), to = ops::AroundAxis(y, op.axis);
  const int64_t taps = ctx.input(1).shape[1];
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    VisitTables(ctx, [&](const auto* places, const auto* weights) {
      const auto gather = [&](const auto& sum) {
        sum(from, to, taps, x.as<const T>(), places, weights, y.as<T>());
      };
      to.inner == 1 ? gather([](const auto&... all) { GatherColumns(all...); })
                    : gather([](const auto&... all) { GatherRows(all...); });
    });
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::WeightedGather, WeightedGather);

}  // namespace
}  // namespace caffe::cpu
