#include "caffe/cuda/kernels/wide.cuh"
#include "caffe/cuda/reduce.cuh"
#include "caffe/ops/adaptive_updates.hpp"

namespace caffe::cuda {
namespace {

// The operands of an update; the scalars are read on the device, where a replayed graph finds
// those of its step.
template <typename Op, typename T>
struct Operands {
  Op op;
  const double* scalars;
  const T* g;
  T* w;
  T* states[Op::kStates];

  Operands(const Op& op, const KernelContext& ctx)
      : op(op),
        scalars(ctx.input(1).as<const double>()),
        g(ctx.input(0).as<const T>()),
        w(ctx.output(0).as<T>()) {
    for (int k = 0; k < Op::kStates; ++k) states[k] = ctx.output(1 + k).as<T>();
  }
  __device__ ops::UpdateScalars<T> Scalars() const { return ops::ScalarsOf<T>(op, scalars); }
};

template <typename Op, typename T>
struct UpdateElement {
  Operands<Op, T> operands;

  __device__ void operator()(int64_t i) const {
    const ops::UpdateScalars<T> s = operands.Scalars();
    const T w = operands.w[i];
    T h[Op::kStates];
#pragma unroll
    for (int k = 0; k < Op::kStates; ++k) h[k] = operands.states[k][i];
    operands.w[i] = w - operands.op.Delta(s, ops::RegularizedGradient(s, operands.g[i], w), w, h);
#pragma unroll
    for (int k = 0; k < Op::kStates; ++k) operands.states[k][i] = h[k];
  }
};

template <typename Op>
void Update(const Op& op, const KernelContext& ctx) {
  VisitWide(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
    ForEach(ctx, ctx.output(0).count(), UpdateElement<Op, T>{Operands<Op, T>(op, ctx)});
  });
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
        operands.op.Direction(s, ops::RegularizedGradient(s, operands.g[i], w), w, h);
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
    w -= s.rate * static_cast<T>(*trust) * operands.op.DirectionOf(s, w, h);
  }
};

KernelOrRefusal MakeLambUpdate(const ops::LambUpdate& op, const KernelRequest& request) {
  const Covered all(1, 1, request.outputs[0].count());
  constexpr size_t kTrustBytes = 16;
  return Kernel{"",
                [=](const KernelContext& ctx) {
                  double* trust = static_cast<double*>(ctx.workspace);
                  void* partial = static_cast<char*>(ctx.workspace) + kTrustBytes;
                  VisitWide(ctx.output(0).dtype, [&]<typename T>(TypeTag<T>) {
                    const Operands<ops::LambUpdate, T> operands(op, ctx);
                    SumCovered<2, double>(ctx, all, partial, UpdateMoments<T>{operands},
                                          StoreTrust{trust});
                    ForEach(ctx, all.length(), TakeStep<T>{operands, trust});
                  });
                },
                kTrustBytes + SumWorkspace<2, double>(all)};
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::NesterovUpdate, Update<ops::NesterovUpdate>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::AdaGradUpdate, Update<ops::AdaGradUpdate>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::RmsPropUpdate, Update<ops::RmsPropUpdate>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::AdaDeltaUpdate, Update<ops::AdaDeltaUpdate>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::AdamUpdate, Update<ops::AdamUpdate>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::SagUpdate, Update<ops::SagUpdate>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::AdaSecantUpdate, Update<ops::AdaSecantUpdate>);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::LambUpdate, "lamb-update",
                              KernelRank::kReference, MakeLambUpdate);

}  // namespace
}  // namespace caffe::cuda
