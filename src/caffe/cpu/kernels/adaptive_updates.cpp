#include "caffe/ops/adaptive_updates.hpp"

#include <array>
#include <cmath>

#include "caffe/cpu/kernels/wide.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// Pointers to the states' elements from `begin` on.
template <typename Op, typename T>
std::array<T*, Op::kStates> StatesAt(const KernelContext& ctx, int64_t begin) {
  std::array<T*, Op::kStates> states;
  for (int k = 0; k < Op::kStates; ++k) states[k] = ctx.output(1 + k).as<T>() + begin;
  return states;
}

template <typename Op, typename T>
CAFFE_CPU_CLONES void UpdateRange(const Op op, const ops::UpdateScalars<T> s, const T* g, T* w,
                                  const std::array<T*, Op::kStates> states, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    T h[Op::kStates];
    for (int k = 0; k < Op::kStates; ++k) h[k] = states[k][i];
    w[i] -= op.Delta(s, ops::RegularizedGradient(s, g[i], w[i]), w[i], h);
    for (int k = 0; k < Op::kStates; ++k) states[k][i] = h[k];
  }
}

template <typename Op>
void Update(const Op& op, const KernelContext& ctx) {
  VisitWide(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    const auto scalars = ops::ScalarsOf<T>(op, ctx.input(1).as<const double>());
    ParallelFor(ctx.output(0).count(), kPointwiseGrain, [&](int64_t begin, int64_t end) {
      UpdateRange<Op, T>(op, scalars, ctx.input(0).as<const T>() + begin,
                         ctx.output(0).as<T>() + begin, StatesAt<Op, T>(ctx, begin), end - begin);
    });
  });
}

// Two passes: the moments and both norms, then the step. Sums go block by block, so that they do
// not depend on threads.
void LambUpdate(const ops::LambUpdate& op, const KernelContext& ctx) {
  VisitWide(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    constexpr int64_t kBlocks = 64;
    const auto s = ops::ScalarsOf<T>(op, ctx.input(1).as<const double>());
    const int64_t count = ctx.output(0).count();
    const T* g = ctx.input(0).as<const T>();
    T* w = ctx.output(0).as<T>();
    const auto states = StatesAt<ops::LambUpdate, T>(ctx, 0);
    std::array<double, kBlocks> weight_sums{}, direction_sums{};
    ParallelFor(kBlocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        for (int64_t i = count * block / kBlocks; i < count * (block + 1) / kBlocks; ++i) {
          T h[2] = {states[0][i], states[1][i]};
          const double direction =
              op.Direction(s, ops::RegularizedGradient(s, g[i], w[i]), w[i], h);
          states[0][i] = h[0], states[1][i] = h[1];
          weight_sums[block] += static_cast<double>(w[i]) * static_cast<double>(w[i]);
          direction_sums[block] += direction * direction;
        }
      }
    });
    double weights = 0, directions = 0;
    for (int64_t i = 0; i < kBlocks; ++i)
      weights += weight_sums[i], directions += direction_sums[i];
    const double trust = weights > 0 && directions > 0 ? std::sqrt(weights / directions) : 1;
    const T rate = s.rate * static_cast<T>(trust);
    ParallelFor(count, kPointwiseGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T h[2] = {states[0][i], states[1][i]};
        w[i] -= rate * op.DirectionOf(s, w[i], h);
      }
    });
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::NesterovUpdate, Update<ops::NesterovUpdate>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::AdaGradUpdate, Update<ops::AdaGradUpdate>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::RmsPropUpdate, Update<ops::RmsPropUpdate>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::AdaDeltaUpdate, Update<ops::AdaDeltaUpdate>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::AdamUpdate, Update<ops::AdamUpdate>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SagUpdate, Update<ops::SagUpdate>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::AdaSecantUpdate, Update<ops::AdaSecantUpdate>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::LambUpdate, LambUpdate);

}  // namespace
}  // namespace caffe::cpu
