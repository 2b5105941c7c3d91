#include "caffe/ops/update_rules.hpp"

#include <array>
#include <cmath>

#include "caffe/cpu/kernels/wide.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

// The operands of one parameter.
struct Parameter {
  const TensorView& g;
  const double *step, *decision;
  size_t index;
  std::span<const TensorView> outputs;

  template <typename T>
  ops::UpdateScalars<T> Scalars(const ops::ElementwiseUpdate& op) const {
    return ops::ScalarsOf<T>(op, step, decision, index);
  }

  const TensorView& w() const { return outputs[0]; }
  // Pointers to the states' elements from `begin` on.
  template <typename Op, typename T>
  std::array<T*, Op::kStates> StatesAt(int64_t begin) const {
    std::array<T*, Op::kStates> states;
    for (int k = 0; k < Op::kStates; ++k) states[k] = outputs[1 + k].as<T>() + begin;
    return states;
  }
};

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
void Update(const Op& op, const Parameter& parameter) {
  VisitWide(parameter.w().dtype, [&]<typename T>(TypeTag<T>) {
    const auto scalars = parameter.Scalars<T>(op);
    ParallelFor(parameter.w().count(), kPointwiseGrain, [&](int64_t begin, int64_t end) {
      UpdateRange<Op, T>(op, scalars, parameter.g.as<const T>() + begin,
                         parameter.w().as<T>() + begin, parameter.StatesAt<Op, T>(begin),
                         end - begin);
    });
  });
}

// Two passes: the moments and both norms, then the step. Sums go block by block, so that they do
// not depend on threads.
void Update(const ops::LambUpdate& op, const Parameter& parameter) {
  VisitWide(parameter.w().dtype, [&]<typename T>(TypeTag<T>) {
    constexpr int64_t kBlocks = 64;
    const auto s = parameter.Scalars<T>(op);
    const int64_t count = parameter.w().count();
    const T* g = parameter.g.as<const T>();
    T* w = parameter.w().as<T>();
    const auto states = parameter.StatesAt<ops::LambUpdate, T>(0);
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

template <typename Rule>
void UpdateAll(const ops::UpdateAll<Rule>& op, const KernelContext& ctx) {
  const int count = static_cast<int>(op.each.size());
  const double* step = ctx.input(count).as<const double>();
  const double* decision = ctx.has_input(count + 1) ? ctx.input(count + 1).as<double>() : nullptr;
  if (ops::Skips(decision)) return;
  for (size_t i = 0; i < op.each.size(); ++i) {
    Update(op.each[i], Parameter{ctx.inputs[i], step, decision, i,
                                 ctx.outputs.subspan(i * op.kOutputs, op.kOutputs)});
  }
  for (size_t i = 0; i < op.copies.size(); ++i) {
    CopyTensor(ctx.outputs[op.copies[i] * op.kOutputs],
               ctx.outputs[op.each.size() * op.kOutputs + i]);
  }
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::UpdateAll<ops::SgdUpdate>, UpdateAll<ops::SgdUpdate>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::UpdateAll<ops::NesterovUpdate>,
                      UpdateAll<ops::NesterovUpdate>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::UpdateAll<ops::AdaGradUpdate>,
                      UpdateAll<ops::AdaGradUpdate>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::UpdateAll<ops::RmsPropUpdate>,
                      UpdateAll<ops::RmsPropUpdate>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::UpdateAll<ops::AdaDeltaUpdate>,
                      UpdateAll<ops::AdaDeltaUpdate>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::UpdateAll<ops::AdamUpdate>,
                      UpdateAll<ops::AdamUpdate>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::UpdateAll<ops::SagUpdate>, UpdateAll<ops::SagUpdate>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::UpdateAll<ops::AdaSecantUpdate>,
                      UpdateAll<ops::AdaSecantUpdate>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::UpdateAll<ops::LambUpdate>,
                      UpdateAll<ops::LambUpdate>);

}  // namespace
}  // namespace caffe::cpu
