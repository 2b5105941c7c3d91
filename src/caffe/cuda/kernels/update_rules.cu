#include "caffe/cuda/divisor.cuh"
#include "caffe/cuda/kernels/wide.cuh"
#include "caffe/cuda/numbers.cuh"
#include "caffe/cuda/pack.cuh"
#include "caffe/cuda/reduce.cuh"
#include "caffe/cuda/tensor_table.cuh"
#include "caffe/ops/update_rules.hpp"

namespace caffe::cuda {
namespace {

// A copy of the weights in another type or layout.
struct Copy {
  Numbers to;
  Divisor channels, pixels;  // for a channels-last copy

  Copy() = default;
  explicit Copy(const TensorView& view) : to{view.data, view.dtype} {
    if (view.layout == Layout::kPlain) return;
    channels = Divisor(view.shape[1]);
    pixels = Divisor(view.shape[2] * view.shape[3]);
  }
  CAFFE_HOST_DEVICE bool is_turned() const { return channels.value > 1 && pixels.value > 1; }

  // Offset of the weights' element i in the copy.
  __device__ uint32_t Turned(uint32_t i) const {
    uint32_t pixel, channel;
    const uint32_t row = channels.Divide(pixels.Divide(i, &pixel), &channel);
    return (row * pixels.value + pixel) * channels.value + channel;
  }

  template <typename T>
  __device__ void Store(int64_t i, T w) const {
    if (!to.is_present()) return;
    to.Set(is_turned() ? Turned(static_cast<uint32_t>(i)) : i, w);
  }
};

// The copies of a parameter; separate values so that an update loop is specialised for them.
enum class Copying : uint8_t { kNone, kFloat16, kBFloat16, kTurnedFloat16, kTurnedBFloat16, kAny };

struct NoCopy {
  template <typename T, int N>
  __device__ void Store(int64_t, const WidePack<T, N>&) const {}
};

// Writes one copy in the weights' order.
template <typename To>
struct PlainCopy {
  To* to;

  template <typename T, int N>
  __device__ void Store(int64_t i, const WidePack<T, N>& w) const {
    WidePack<To, N> values;
#pragma unroll
    for (int k = 0; k < N; ++k) values.values[k] = static_cast<float>(w.values[k]);
    StorePack(to + i, 0, values);
  }
};

// Writes one channels-last copy.
template <typename To>
struct TurnedCopy {
  const Copy& copy;

  template <typename T, int N>
  __device__ void Store(int64_t i, const WidePack<T, N>& w) const {
    To* const to = static_cast<To*>(copy.to.data);
#pragma unroll
    for (int k = 0; k < N; ++k)
      to[copy.Turned(static_cast<uint32_t>(i + k))] = To(static_cast<float>(w.values[k]));
  }
};

template <int kMost>
struct AnyCopies {
  const Copy* copies;

  template <typename T, int N>
  __device__ void Store(int64_t i, const WidePack<T, N>& w) const {
#pragma unroll
    for (int k = 0; k < N; ++k) {
#pragma unroll
      for (int copy = 0; copy < kMost; ++copy) copies[copy].Store(i + k, w.values[k]);
    }
  }
};

// The operands of one parameter's update. Scalars of the update are read on the device, so that a
// replayed graph uses the current ones.
template <typename Rule, typename T>
struct UpdateOperands {
  // Elements that a thread updates together; optimizers with many states fill its registers with
  // one.
  static constexpr int kPack = Rule::kStates > 4 ? 1 : kPackSize<T>;
  static constexpr int kMostCopies = ops::ParameterUpdate<Rule>::kMostCopies;
  Rule rule;
  const double *step, *decision;
  size_t index;
  const T* g;
  T* w;
  T* states[Rule::kStates];
  int64_t count;
  Copy copies[kMostCopies];
  Copying copying = Copying::kNone;
  bool is_packed = true;

  UpdateOperands(const ops::ParameterUpdate<Rule>& op, const KernelContext& ctx, size_t i)
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
    if (found > 0) copying = found == 1 ? CopyingOf(copies[0]) : Copying::kAny;
    is_packed = AreAligned();
  }
  __device__ bool skips() const { return ops::Skips(decision); }
  __device__ ops::UpdateScalars<T> Scalars() const {
    return ops::ScalarsOf<T>(rule, step, decision, index);
  }
  __device__ AnyCopies<kMostCopies> any_copies() const { return {copies}; }

  // Updates elements i .. i + N - 1; loads all operands before it stores anything.
  template <int N, typename CopyTo>
  __device__ void Update(const ops::UpdateScalars<T>& s, int64_t i, const CopyTo& copy) const {
    using Values = Pack<T, N>;
    const Values before = *reinterpret_cast<const Values*>(w + i);
    const Values gradient = *reinterpret_cast<const Values*>(g + i);
    Values h[Rule::kStates];
#pragma unroll
    for (int k = 0; k < Rule::kStates; ++k) h[k] = *reinterpret_cast<const Values*>(states[k] + i);
    WidePack<T, N> after;
#pragma unroll
    for (int n = 0; n < N; ++n) after.values[n] = UpdateOne(s, before, gradient, h, n);
    *reinterpret_cast<Values*>(w + i) = Narrow(after);
#pragma unroll
    for (int k = 0; k < Rule::kStates; ++k) *reinterpret_cast<Values*>(states[k] + i) = h[k];
    copy.Store(i, after);
  }

 private:
  static Copying CopyingOf(const Copy& copy) {
    switch (copy.to.dtype) {
      case DType::kFloat16:
        return copy.is_turned() ? Copying::kTurnedFloat16 : Copying::kFloat16;
      case DType::kBFloat16:
        return copy.is_turned() ? Copying::kTurnedBFloat16 : Copying::kBFloat16;
      default:
        return Copying::kAny;
    }
  }
  bool AreAligned() const {
    bool are_aligned = IsPackAligned<T, kPack>(w) && IsPackAligned<T, kPack>(g);
    for (const T* state : states) are_aligned = are_aligned && IsPackAligned<T, kPack>(state);
    for (const Copy& copy : copies)
      are_aligned = are_aligned && reinterpret_cast<uintptr_t>(copy.to.data) % 16 == 0;
    return are_aligned;
  }

  // Updates element n of the packs and its states.
  template <int N>
  __device__ T UpdateOne(const ops::UpdateScalars<T>& s, const Pack<T, N>& before,
                         const Pack<T, N>& gradient, Pack<T, N>* states_of_pack, int n) const {
    T h[Rule::kStates];
#pragma unroll
    for (int k = 0; k < Rule::kStates; ++k) h[k] = states_of_pack[k].values[n];
    const T w_before = before.values[n];
    const T delta =
        rule.Delta(s, ops::RegularizedGradient(s, gradient.values[n], w_before), w_before, h);
#pragma unroll
    for (int k = 0; k < Rule::kStates; ++k) states_of_pack[k].values[n] = h[k];
    return w_before - delta;
  }
};

// Updates elements [begin, end) with the block's threads; `begin` is a multiple of a pack.
template <typename Rule, typename T, typename CopyTo>
__device__ inline void UpdateRange(const UpdateOperands<Rule, T>& parameter, int64_t begin,
                                   int64_t end, const CopyTo& copy) {
  constexpr int N = UpdateOperands<Rule, T>::kPack;
  const ops::UpdateScalars<T> s = parameter.Scalars();
  const int64_t rest = parameter.is_packed ? begin + (end - begin) / N * N : begin;
#pragma unroll 1
  for (int64_t i = begin + threadIdx.x * N; i < rest; i += blockDim.x * N)
    parameter.template Update<N>(s, i, copy);
#pragma unroll 1
  for (int64_t i = rest + threadIdx.x; i < end; i += blockDim.x)
    parameter.template Update<1>(s, i, copy);
}

template <typename Rule, typename T>
__global__ void __launch_bounds__(kBlockThreads)
    ParameterUpdateKernel(const UpdateOperands<Rule, T>* parameters, Chunks chunks) {
  if (parameters[0].skips()) return;
  for (int64_t chunk = blockIdx.x; chunk < chunks.count(); chunk += gridDim.x) {
    const int at = chunks.TensorOf(chunk);
    // Copied to registers, because the compiler cannot exclude that the stores change the table.
    const UpdateOperands<Rule, T> parameter = parameters[at];
    const int64_t begin = chunks.Begin(chunk, at);
    const int64_t end = std::min(begin + kChunk, parameter.count);
    void* const copy = parameter.copies[0].to.data;
    switch (parameter.copying) {
      case Copying::kNone:
        UpdateRange(parameter, begin, end, NoCopy{});
        break;
      case Copying::kFloat16:
        UpdateRange(parameter, begin, end, PlainCopy<float16>{static_cast<float16*>(copy)});
        break;
      case Copying::kBFloat16:
        UpdateRange(parameter, begin, end, PlainCopy<bfloat16>{static_cast<bfloat16*>(copy)});
        break;
      case Copying::kTurnedFloat16:
        UpdateRange(parameter, begin, end, TurnedCopy<float16>{parameter.copies[0]});
        break;
      case Copying::kTurnedBFloat16:
        UpdateRange(parameter, begin, end, TurnedCopy<bfloat16>{parameter.copies[0]});
        break;
      case Copying::kAny:
        UpdateRange(parameter, begin, end, parameters[at].any_copies());
        break;
    }
  }
}

template <typename Rule>
KernelOrRefusal MakeParameterUpdate(const ops::ParameterUpdate<Rule>& op,
                                    const KernelRequest& request) {
  std::vector<int64_t> counts;
  for (size_t i = 0; i < op.each.size(); ++i) {
    const OperandDesc& w = request.outputs[i * op.kOutputs];
    if (w.dtype != request.outputs[0].dtype) return Refusal{"parameters of several types"};
    counts.push_back(w.count());
  }
  const auto table =
      std::make_shared<TensorTable>(counts, sizeof(UpdateOperands<Rule, double>), request.device);
  return Kernel{"", [op, table](const KernelContext& ctx) {
                  VisitWide(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
                    const auto entry = [&](size_t i) {
                      return UpdateOperands<Rule, T>(op, ctx, i);
                    };
                    Launch(ctx, ParameterUpdateKernel<Rule, T>, table->blocks(), kBlockThreads,
                           table->Send(ctx, entry), table->chunks());
                  });
                }};
}

// Two passes: the moments and both norms, then the update.
template <typename T>
struct UpdateMoments {
  UpdateOperands<ops::LambUpdate, T> operands;

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
  UpdateOperands<ops::LambUpdate, T> operands;
  const double* trust;

  __device__ void operator()(int64_t i) const {
    if (operands.skips()) return;
    const ops::UpdateScalars<T> s = operands.Scalars();
    const T h[2] = {operands.states[0][i], operands.states[1][i]};
    const T w = operands.w[i];
    const WidePack<T, 1> after{
        {w - s.rate * static_cast<T>(*trust) * operands.rule.DirectionOf(s, w, h)}};
    operands.w[i] = after.values[0];
    operands.any_copies().Store(i, after);
  }
};

// Parameters are updated one after the other: each update waits for its norms.
KernelOrRefusal MakeLambUpdate(const ops::ParameterUpdate<ops::LambUpdate>& op,
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
                      const UpdateOperands<ops::LambUpdate, T> operands(op, ctx, i);
                      SumCovered<2, double>(ctx, all_of(operands.count), partial,
                                            UpdateMoments<T>{operands}, StoreTrust{trust});
                      ForEach(ctx, operands.count, TakeStep<T>{operands, trust});
                    }
                  });
                },
                kTrustBytes + partial_bytes};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::ParameterUpdate<ops::SgdUpdate>, "sgd-update",
                              KernelRank::kReference, MakeParameterUpdate<ops::SgdUpdate>);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::ParameterUpdate<ops::NesterovUpdate>,
                              "nesterov-update", KernelRank::kReference,
                              MakeParameterUpdate<ops::NesterovUpdate>);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::ParameterUpdate<ops::AdaGradUpdate>,
                              "ada-grad-update", KernelRank::kReference,
                              MakeParameterUpdate<ops::AdaGradUpdate>);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::ParameterUpdate<ops::RmsPropUpdate>,
                              "rms-prop-update", KernelRank::kReference,
                              MakeParameterUpdate<ops::RmsPropUpdate>);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::ParameterUpdate<ops::AdaDeltaUpdate>,
                              "ada-delta-update", KernelRank::kReference,
                              MakeParameterUpdate<ops::AdaDeltaUpdate>);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::ParameterUpdate<ops::AdamUpdate>,
                              "adam-update", KernelRank::kReference,
                              MakeParameterUpdate<ops::AdamUpdate>);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::ParameterUpdate<ops::LionUpdate>,
                              "lion-update", KernelRank::kReference,
                              MakeParameterUpdate<ops::LionUpdate>);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::ParameterUpdate<ops::SagUpdate>, "sag-update",
                              KernelRank::kReference, MakeParameterUpdate<ops::SagUpdate>);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::ParameterUpdate<ops::AdaSecantUpdate>,
                              "ada-secant-update", KernelRank::kReference,
                              MakeParameterUpdate<ops::AdaSecantUpdate>);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::ParameterUpdate<ops::LambUpdate>,
                              "lamb-update", KernelRank::kReference, MakeLambUpdate);

}  // namespace
}  // namespace caffe::cuda
