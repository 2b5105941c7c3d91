#include "caffe/cuda/kernels/wide.cuh"
#include "caffe/cuda/numbers.cuh"
#include "caffe/cuda/reduce.cuh"
#include "caffe/cuda/tensor_table.cuh"
#include "caffe/ops/update_rules.hpp"

namespace caffe::cuda {
namespace {

// Weights in another type or layout.
struct Copy {
  Numbers to;
  int64_t channels = 1, pixels = 1;  // channels-last: rows of pixels become rows of channels

  Copy() = default;
  explicit Copy(const TensorView& view) : to{view.data, view.dtype} {
    if (view.layout == Layout::kPlain) return;
    channels = view.shape[1];
    pixels = view.shape[2] * view.shape[3];
  }
  template <typename T>
  __device__ void Store(int64_t i, T w) const {
    if (!to.is_present()) return;
    if (channels > 1 && pixels > 1) {
      int64_t pixel, channel;
      const int64_t row = Divide(Divide(i, pixels, &pixel), channels, &channel);
      i = (row * pixels + pixel) * channels + channel;
    }
    to.Set(i, w);
  }
};

// The operands of one parameter's update. The step's numbers are read on the device, where a
// replayed graph finds its own.
template <typename Rule, typename T>
struct Operands {
  Rule rule;
  const double *step, *decision;
  size_t index;
  const T* g;
  T* w;
  T* states[Rule::kStates];
  int64_t count;
  Copy copies[ops::UpdateAll<Rule>::kMostCopies];

  Operands(const ops::UpdateAll<Rule>& op, const KernelContext& ctx, size_t i)
      : rule(op.each[i]), index(i), g(ctx.inputs[i].as<const T>()) {
    const int parameters = static_cast<int>(op.each.size());
    step = ctx.input(parameters).as<const double>();
    decision =
        ctx.has_input(parameters + 1) ? ctx.input(parameters + 1).as<const double>() : nullptr;
    const TensorView* outputs = &ctx.outputs[i * op.kOutputs];
    w = outputs[0].as<T>();
    for (int k = 0; k < Rule::kStates; ++k) states[k] = outputs[1 + k].as<T>();
    count = outputs[0].count();
    int found = 0;
    for (size_t k = 0; k < op.copies.size(); ++k) {
      if (op.copies[k] == static_cast<int>(i))
        copies[found++] = Copy(ctx.outputs[op.each.size() * op.kOutputs + k]);
    }
  }
  __device__ bool skips() const { return ops::Skips(decision); }
  __device__ ops::UpdateScalars<T> Scalars() const {
    return ops::ScalarsOf<T>(rule, step, decision, index);
  }
  __device__ void Store(int64_t i, T weight) const {
    w[i] = weight;
    for (const Copy& copy : copies) copy.Store(i, weight);
  }
  __device__ void Update(const ops::UpdateScalars<T>& s, int64_t i) const {
    const T before = w[i];
    T h[Rule::kStates];
#pragma unroll
    for (int k = 0; k < Rule::kStates; ++k) h[k] = states[k][i];
    Store(i, before - rule.Delta(s, ops::RegularizedGradient(s, g[i], before), before, h));
#pragma unroll
    for (int k = 0; k < Rule::kStates; ++k) states[k][i] = h[k];
  }
};

template <typename Rule, typename T>
__global__ void __launch_bounds__(kBlockThreads)
    UpdateAllKernel(const Operands<Rule, T>* parameters, Chunks chunks) {
  if (parameters[0].skips()) return;
  for (int64_t chunk = blockIdx.x; chunk < chunks.count(); chunk += gridDim.x) {
    const int at = chunks.TensorOf(chunk);
    const Operands<Rule, T>& parameter = parameters[at];
    const ops::UpdateScalars<T> s = parameter.Scalars();
    const int64_t begin = chunks.Begin(chunk, at);
    const int64_t end = std::min(begin + kChunk, parameter.count);
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) parameter.Update(s, i);
  }
}

template <typename Rule>
KernelOrRefusal MakeUpdateAll(const ops::UpdateAll<Rule>& op, const KernelRequest& request) {
  std::vector<int64_t> counts;
  for (size_t i = 0; i < op.each.size(); ++i) {
    const OperandDesc& w = request.outputs[i * op.kOutputs];
    if (w.dtype != request.outputs[0].dtype) return Refusal{"parameters of several types"};
    counts.push_back(w.count());
  }
  const auto table =
      std::make_shared<TensorTable>(counts, sizeof(Operands<Rule, double>), request.device);
  return Kernel{"", [op, table](const KernelContext& ctx) {
                  VisitWide(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
                    const auto entry = [&](size_t i) { return Operands<Rule, T>(op, ctx, i); };
                    Launch(ctx, UpdateAllKernel<Rule, T>, table->blocks(), kBlockThreads,
                           table->Send(ctx, entry), table->chunks());
                  });
                }};
}

// Two passes: the moments and both norms, then the step.
template <typename T>
struct UpdateMoments {
  Operands<ops::LambUpdate, T> operands;

  __device__ void operator()(int64_t, int64_t i, Sums<2, double>& sums) const {
    if (operands.skips()) return;
    const ops::UpdateScalars<T> s = operands.Scalars();
    const T w = operands.w[i];
    T h[2] = {operands.states[0][i], operands.states[1][i]};
    const double direction =
        operands.rule.Direction(s, ops::RegularizedGradient(s, operands.g[i], w), w, h);
    operands.states[0][i] = h[0];
    operands.states[1][i] = h[1];
    sums.values[0] += static_cast<double>(w) * static_cast<double>(w);
    sums.values[1] += direction * direction;
  }
};

struct StoreTrust {
  double* trust;

  __device__ void operator()(int64_t, const Sums<2, double>& sums) const {
    const double weights = sums.values[0], directions = sums.values[1];
    *trust = weights > 0 && directions > 0 ? std::sqrt(weights / directions) : 1;
  }
};

template <typename T>
struct TakeStep {
  Operands<ops::LambUpdate, T> operands;
  const double* trust;

  __device__ void operator()(int64_t i) const {
    if (operands.skips()) return;
    const ops::UpdateScalars<T> s = operands.Scalars();
    const T h[2] = {operands.states[0][i], operands.states[1][i]};
    const T w = operands.w[i];
    operands.Store(i, w - s.rate * static_cast<T>(*trust) * operands.rule.DirectionOf(s, w, h));
  }
};

// One parameter after the other: the step of each waits for its norms.
KernelOrRefusal MakeLambUpdate(const ops::UpdateAll<ops::LambUpdate>& op,
                               const KernelRequest& request) {
  constexpr size_t kTrustBytes = 16;
  const auto all_of = [](int64_t count) { return Covered(1, 1, count); };
  size_t partial_bytes = 0;
  for (size_t i = 0; i < op.each.size(); ++i) {
    partial_bytes = std::max(
        partial_bytes, SumWorkspace<2, double>(all_of(request.outputs[i * op.kOutputs].count())));
  }
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  double* trust = static_cast<double*>(ctx.workspace);
                  void* partial = static_cast<char*>(ctx.workspace) + kTrustBytes;
                  VisitWide(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
                    for (size_t i = 0; i < op.each.size(); ++i) {
                      const Operands<ops::LambUpdate, T> operands(op, ctx, i);
                      SumCovered<2, double>(ctx, all_of(operands.count), partial,
                                            UpdateMoments<T>{operands}, StoreTrust{trust});
                      ForEach(ctx, operands.count, TakeStep<T>{operands, trust});
                    }
                  });
                },
                kTrustBytes + partial_bytes};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::UpdateAll<ops::SgdUpdate>, "sgd-update",
                              KernelRank::kReference, MakeUpdateAll<ops::SgdUpdate>);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::UpdateAll<ops::NesterovUpdate>,
                              "nesterov-update", KernelRank::kReference,
                              MakeUpdateAll<ops::NesterovUpdate>);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::UpdateAll<ops::AdaGradUpdate>,
                              "ada-grad-update", KernelRank::kReference,
                              MakeUpdateAll<ops::AdaGradUpdate>);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::UpdateAll<ops::RmsPropUpdate>,
                              "rms-prop-update", KernelRank::kReference,
                              MakeUpdateAll<ops::RmsPropUpdate>);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::UpdateAll<ops::AdaDeltaUpdate>,
                              "ada-delta-update", KernelRank::kReference,
                              MakeUpdateAll<ops::AdaDeltaUpdate>);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::UpdateAll<ops::AdamUpdate>, "adam-update",
                              KernelRank::kReference, MakeUpdateAll<ops::AdamUpdate>);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::UpdateAll<ops::SagUpdate>, "sag-update",
                              KernelRank::kReference, MakeUpdateAll<ops::SagUpdate>);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::UpdateAll<ops::AdaSecantUpdate>,
                              "ada-secant-update", KernelRank::kReference,
                              MakeUpdateAll<ops::AdaSecantUpdate>);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::UpdateAll<ops::LambUpdate>, "lamb-update",
                              KernelRank::kReference, MakeLambUpdate);

}  // namespace
}  // namespace caffe::cuda
