#include "caffe/ops/combine.hpp"

#include <algorithm>
#include <utility>

#include "caffe/cpu/kernels/each_element.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// Elements of an operand along the last axis of the result: each one, or the same one.
template <typename In, bool kIsAlong>
struct LastAxis {
  In in;
  int64_t first, step;

  auto operator[](int64_t i) const { return in[first + (kIsAlong ? i : i * step)]; }
};

template <typename Op, typename T, typename... Row>
CAFFE_CPU_CLONES void CombineRow(const Op& op, T* y, int64_t width, Row... rows) {
  using A = Accum<T>;
  for (int64_t i = 0; i < width; ++i) y[i] = T(op.template Value<A>(rows[i]...));
}

template <typename Op, typename T, size_t... kInput>
void CombineRows(const Op& op, const KernelContext& ctx, std::index_sequence<kInput...>) {
  T* y = ctx.output(0).as<T>();
  const ops::BroadcastSteps& broadcast = op.broadcast;
  const int64_t width = std::max<int64_t>(broadcast.width(), 1);
  const int64_t rows = ctx.output(0).count() / width;
  const auto steps = [&]<bool kAreAlong>(int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      CombineRow<Op, T>(op, y + row * width, width,
                        LastAxis<decltype(OperandOf<Op, T, kInput>(ctx)), kAreAlong>{
                            OperandOf<Op, T, kInput>(ctx), broadcast.At(kInput, row * width),
                            broadcast.last_step(kInput)}...);
    }
  };
  const bool are_along = ((broadcast.last_step(kInput) == 1) && ...);
  ParallelFor(rows, 1 + kPointwiseGrain / width, [&](int64_t begin, int64_t end) {
    if (are_along) {
      steps.template operator()<true>(begin, end);
    } else {
      steps.template operator()<false>(begin, end);
    }
  });
}

template <typename Op>
void Combined(const Op& op, const KernelContext& ctx) {
  VisitFloat(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    CombineRows<Op, T>(op, ctx, std::make_index_sequence<Op::kInputs>());
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Combine, Combined<ops::Combine>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::CombineGrad, Combined<ops::CombineGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Choose, Combined<ops::Choose>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::ChooseGrad, Combined<ops::ChooseGrad>);

}  // namespace
}  // namespace caffe::cpu
