#include "caffe/cuda/kernels/wide.cuh"
#include "caffe/cuda/reduce.cuh"
#include "caffe/ops/update_rules.hpp"

namespace caffe::cuda {
namespace {

// The operands of one parameter's update. The scalars are read on the device, where a replayed
// graph finds those of its step.
template <typename Rule, typename T>
struct Operands {
  Rule rule;
  const double* scalars;
  const T* g;
  T* w;
  T* states[Rule::kStates];
  int64_t count;

  Operands(const ops::UpdateAll<Rule>& op, const KernelContext& ctx, size_t i)
      : rule(op.each[i]), g(ctx.inputs[i].as<const T>()) {
    const TensorView& rows = ctx.inputs[op.each.size()];
    scalars = rows.as<const double>() + i * op.kScalars;
    const TensorView* outputs = &ctx.outputs[i * op.kOutputs];
    w = outputs[0].as<T>();
    for (int k = 0; k < Rule::kStates; ++k) states[k] = outputs[1 + k].as<T>();
    count = outputs[0].count();
  }
  __device__ ops::UpdateScalars<T> Scalars() const { return ops::ScalarsOf<T>(rule, scalars); }
  __device__ void Update(const ops::UpdateScalars<T>& s, int64_t i) const {
    const T before = w[i];
    T h[Rule::kStates];
#pragma unroll
    for (int k = 0; k < Rule::kStates; ++k) h[k] = states[k][i];
    w[i] = before - rule.Delta(s, ops::RegularizedGradient(s, g[i], before), before, h);
#pragma unroll
    for (int k = 0; k < Rule::kStates; ++k) states[k][i] = h[k];
  }
};

// Elements that a block updates at a time.
constexpr int64_t kChunk = 16 * kBlockThreads;

// Chunk c belongs to the last parameter whose first_chunk is not beyond it.
template <typename Rule, typename T>
__global__ void __launch_bounds__(kBlockThreads)
    UpdateAllKernel(const Operands<Rule, T>* parameters, const int64_t* first_chunk, int count) {
  for (int64_t chunk = blockIdx.x; chunk < first_chunk[count]; chunk += gridDim.x) {
    int at = 0;
    for (int end = count; end - at > 1;) {
      const int middle = (at + end) / 2;
      (first_chunk[middle] <= chunk ? at : end) = middle;
    }
    const Operands<Rule, T>& parameter = parameters[at];
    const ops::UpdateScalars<T> s = parameter.Scalars();
    const int64_t begin = (chunk - first_chunk[at]) * kChunk;
    const int64_t end = std::min(begin + kChunk, parameter.count);
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) parameter.Update(s, i);
  }
}

// What the kernel reads of the parameters, in device memory: too much for a launch's arguments, and
// sent again only when an address has changed.
class ParameterTable {
 public:
  template <typename Rule>
  ParameterTable(const ops::UpdateAll<Rule>& op, const KernelRequest& request)
      : first_chunk_(1, 0) {
    for (size_t i = 0; i < op.each.size(); ++i) {
      const int64_t count = request.outputs[i * op.kOutputs].count();
      first_chunk_.push_back(first_chunk_.back() + (count + kChunk - 1) / kChunk);
    }
    if (request.device.is_described()) return;
    const size_t chunk_bytes = first_chunk_.size() * sizeof(int64_t);
    on_device_ = request.device.Allocate(chunk_bytes);
    request.device.CopyFromHost(on_device_.get(), first_chunk_.data(), chunk_bytes);
    table_ = request.device.Allocate(op.each.size() * sizeof(Operands<Rule, double>));
  }

  int64_t chunks() const { return first_chunk_.back(); }
  const int64_t* first_chunk() const { return static_cast<const int64_t*>(on_device_.get()); }

  template <typename Rule, typename T>
  const Operands<Rule, T>* Send(const ops::UpdateAll<Rule>& op, const KernelContext& ctx) {
    const auto is_same = [](const void* known, const TensorView& view) {
      return known == view.data;
    };
    const auto inputs_end =
        sent_.begin() + static_cast<ptrdiff_t>(std::min(sent_.size(), ctx.inputs.size()));
    if (sent_.empty() ||
        !std::equal(sent_.begin(), inputs_end, ctx.inputs.begin(), ctx.inputs.end(), is_same) ||
        !std::equal(inputs_end, sent_.end(), ctx.outputs.begin(), ctx.outputs.end(), is_same)) {
      sent_.clear();
      for (const TensorView& view : ctx.inputs) sent_.push_back(view.data);
      for (const TensorView& view : ctx.outputs) sent_.push_back(view.data);
      std::vector<Operands<Rule, T>> parameters;
      for (size_t i = 0; i < op.each.size(); ++i) parameters.emplace_back(op, ctx, i);
      ctx.stream->CopyFromHost(table_.get(), parameters.data(),
                               parameters.size() * sizeof(parameters[0]));
    }
    return static_cast<const Operands<Rule, T>*>(table_.get());
  }

 private:
  std::vector<int64_t> first_chunk_;
  std::shared_ptr<void> on_device_, table_;
  std::vector<const void*> sent_;  // addresses of all operands
};

template <typename Rule>
KernelOrRefusal MakeUpdateAll(const ops::UpdateAll<Rule>& op, const KernelRequest& request) {
  const auto table = std::make_shared<ParameterTable>(op, request);
  return Kernel{"", [op, table](const KernelContext& ctx) {
                  VisitWide(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
                    Launch(ctx, UpdateAllKernel<Rule, T>, std::min(table->chunks(), kMaxBlocks),
                           kBlockThreads, table->template Send<Rule, T>(op, ctx),
                           table->first_chunk(), static_cast<int>(op.each.size()));
                  });
                }};
}

// Two passes: the moments and both norms, then the step.
template <typename T>
struct UpdateMoments {
  Operands<ops::LambUpdate, T> operands;

  __device__ void operator()(int64_t, int64_t i, Sums<2, double>& sums) const {
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
    const ops::UpdateScalars<T> s = operands.Scalars();
    const T h[2] = {operands.states[0][i], operands.states[1][i]};
    T& w = operands.w[i];
    w -= s.rate * static_cast<T>(*trust) * operands.rule.DirectionOf(s, w, h);
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
