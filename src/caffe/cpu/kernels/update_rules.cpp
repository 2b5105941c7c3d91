#include "caffe/ops/update_rules.hpp"

#include <array>
#include <cmath>
#include <type_traits>
#include <vector>

#include "caffe/cpu/block_sums.hpp"
#include "caffe/cpu/block_sweep.hpp"
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

  template <typename Rule>
  Parameter(const ops::ParameterUpdate<Rule>& op, const KernelContext& ctx, size_t i)
      : g(ctx.inputs[i]), index(i), outputs(ctx.outputs.subspan(i * op.kOutputs, op.kOutputs)) {
    const int parameters = static_cast<int>(op.each.size());
    step = ctx.input(parameters).as<const double>();
    decision = ctx.has_input(parameters + 1) ? ctx.input(parameters + 1).as<double>() : nullptr;
  }

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

template <typename Rule>
void MakeStep(const ops::ParameterUpdate<Rule>& op, const BlockSweep& sweep,
              const KernelContext& ctx) {
  sweep.RunBackwards([&](const BlockSweep::Block& block, size_t) {
    const Parameter parameter(op, ctx, block.tensor);
    VisitWide(parameter.w().dtype, [&]<typename T>(TypeTag<T>) {
      const Rule& rule = op.each[block.tensor];
      UpdateRange<Rule, T>(rule, parameter.Scalars<T>(rule),
                           parameter.g.as<const T>() + block.begin,
                           parameter.w().as<T>() + block.begin,
                           parameter.StatesAt<Rule, T>(block.begin), block.end - block.begin);
    });
  });
}

// Squares of the norms that a LAMB step needs, for a block or a parameter.
struct LambSums {
  double weights = 0, directions = 0;

  void operator+=(const LambSums& other) {
    weights += other.weights;
    directions += other.directions;
  }
  double Trust() const {
    return weights > 0 && directions > 0 ? std::sqrt(weights / directions) : 1;
  }
};

// Writes the directions of a block's elements; updates the moments.
template <typename T>
CAFFE_CPU_CLONES void UpdateMoments(const ops::LambUpdate op, const ops::UpdateScalars<T> s,
                                    const T* g, const T* w, const std::array<T*, 2> states,
                                    T* directions, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    T h[2] = {states[0][i], states[1][i]};
    directions[i] = op.Direction(s, ops::RegularizedGradient(s, g[i], w[i]), w[i], h);
    states[0][i] = h[0], states[1][i] = h[1];
  }
}

template <typename T>
CAFFE_CPU_CLONES void TakeLambStep(const ops::LambUpdate op, const ops::UpdateScalars<T> s, T rate,
                                   T* w, const std::array<T*, 2> states, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const T h[2] = {states[0][i], states[1][i]};
    w[i] -= rate * op.DirectionOf(s, w[i], h);
  }
}

template <typename T>
LambSums UpdateMoments(const ops::LambUpdate& op, const Parameter& parameter,
                       const BlockSweep::Block& block) {
  const auto scalars = parameter.Scalars<T>(op);
  constexpr int64_t kPiece = 1024;
  T directions[kPiece];
  LambSums sums;
  for (int64_t begin = block.begin; begin < block.end; begin += kPiece) {
    const int64_t count = std::min(kPiece, block.end - begin);
    const T* w = parameter.w().as<T>() + begin;
    UpdateMoments<T>(op, scalars, parameter.g.as<const T>() + begin, w,
                     parameter.StatesAt<ops::LambUpdate, T>(begin), directions, count);
    sums += {SumOfSquares(w, count), SumOfSquares(directions, count)};
  }
  return sums;
}

// Two sweeps: first the moments and both norms, then the step.
void MakeStep(const ops::ParameterUpdate<ops::LambUpdate>& op, const BlockSweep& sweep,
              const KernelContext& ctx) {
  LambSums* of_blocks = static_cast<LambSums*>(ctx.workspace);
  LambSums* of_parameters = of_blocks + sweep.blocks().size();
  sweep.Run([&](const BlockSweep::Block& block, size_t number) {
    const Parameter parameter(op, ctx, block.tensor);
    VisitWide(parameter.w().dtype, [&]<typename T>(TypeTag<T>) {
      of_blocks[number] = UpdateMoments<T>(op.each[block.tensor], parameter, block);
    });
  });
  std::fill_n(of_parameters, op.each.size(), LambSums{});
  for (size_t i = 0; i < sweep.blocks().size(); ++i)
    of_parameters[sweep.blocks()[i].tensor] += of_blocks[i];
  sweep.RunBackwards([&](const BlockSweep::Block& block, size_t) {
    const Parameter parameter(op, ctx, block.tensor);
    const double trust = of_parameters[block.tensor].Trust();
    VisitWide(parameter.w().dtype, [&]<typename T>(TypeTag<T>) {
      const auto scalars = parameter.Scalars<T>(op.each[block.tensor]);
      TakeLambStep<T>(op.each[block.tensor], scalars, scalars.rate * static_cast<T>(trust),
                      parameter.w().as<T>() + block.begin,
                      parameter.StatesAt<ops::LambUpdate, T>(block.begin), block.end - block.begin);
    });
  });
}

template <typename Rule>
void RunParameterUpdate(const ops::ParameterUpdate<Rule>& op, const BlockSweep& sweep,
                        const KernelContext& ctx) {
  const int count = static_cast<int>(op.each.size());
  if (ops::Skips(ctx.has_input(count + 1) ? ctx.input(count + 1).as<double>() : nullptr)) return;
  MakeStep(op, sweep, ctx);
  for (size_t i = 0; i < op.copies.size(); ++i) {
    CopyTensor(ctx.outputs[op.copies[i] * op.kOutputs],
               ctx.outputs[op.each.size() * op.kOutputs + i]);
  }
}

template <typename Rule>
KernelOrRefusal MakeParameterUpdate(const ops::ParameterUpdate<Rule>& op,
                                    const KernelRequest& request) {
  std::vector<int64_t> counts;
  for (size_t i = 0; i < op.each.size(); ++i)
    counts.push_back(request.outputs[i * op.kOutputs].count());
  const BlockSweep sweep(counts);
  const size_t sums = sweep.blocks().size() + op.each.size();
  return Kernel{"", [=](const KernelContext& ctx) { RunParameterUpdate(op, sweep, ctx); },
                std::is_same_v<Rule, ops::LambUpdate> ? sums * sizeof(LambSums) : 0};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::ParameterUpdate<ops::SgdUpdate>, "sgd-update",
                              KernelRank::kReference, MakeParameterUpdate<ops::SgdUpdate>);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::ParameterUpdate<ops::NesterovUpdate>,
                              "nesterov-update", KernelRank::kReference,
                              MakeParameterUpdate<ops::NesterovUpdate>);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::ParameterUpdate<ops::AdaGradUpdate>,
                              "ada-grad-update", KernelRank::kReference,
                              MakeParameterUpdate<ops::AdaGradUpdate>);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::ParameterUpdate<ops::RmsPropUpdate>,
                              "rms-prop-update", KernelRank::kReference,
                              MakeParameterUpdate<ops::RmsPropUpdate>);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::ParameterUpdate<ops::AdaDeltaUpdate>,
                              "ada-delta-update", KernelRank::kReference,
                              MakeParameterUpdate<ops::AdaDeltaUpdate>);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::ParameterUpdate<ops::AdamUpdate>,
                              "adam-update", KernelRank::kReference,
                              MakeParameterUpdate<ops::AdamUpdate>);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::ParameterUpdate<ops::LionUpdate>,
                              "lion-update", KernelRank::kReference,
                              MakeParameterUpdate<ops::LionUpdate>);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::ParameterUpdate<ops::SagUpdate>, "sag-update",
                              KernelRank::kReference, MakeParameterUpdate<ops::SagUpdate>);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::ParameterUpdate<ops::AdaSecantUpdate>,
                              "ada-secant-update", KernelRank::kReference,
                              MakeParameterUpdate<ops::AdaSecantUpdate>);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::ParameterUpdate<ops::LambUpdate>,
                              "lamb-update", KernelRank::kReference,
                              MakeParameterUpdate<ops::LambUpdate>);

}  // namespace
}  // namespace caffe::cpu
