// Computes the gradient of a ReLU and that of the preceding bias in one pass over memory.
#include "caffe/cuda/channel_rows.cuh"
#include "caffe/cuda/numbers.cuh"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/fused.hpp"
#include "caffe/ops/pointwise.hpp"

namespace caffe::cuda {
namespace {

// Outputs of the region ReluGrad(s, dy) -> dx, SumToAxes(dx) -> sum.
enum Output { kDx, kSum };

bool IsReluGradSum(const Op& op) {
  const auto& region = *op.As<ops::Fused>();
  return region.Is({ops::ReluGrad::kName, ops::SumToAxes::kName}) &&
         region.Get<ops::SumToAxes>(1).is_per_channel();
}

template <typename T>
struct ReluGradElements {
  using A = Accum<T>;
  ops::ReluGrad gradient;
  const T *s, *dy;
  T* dx;

  __device__ void operator()(int64_t, int64_t i, Sums<1, A>& sums) const {
    const A value = gradient.Apply(Wide(s[i]), Wide(dy[i]));
    dx[i] = T(value);
    sums.values[0] += value;
  }
};

template <typename T, int N>
struct ReluGradRows {
  using A = Accum<T>;
  static constexpr int kUnrolled = 4;
  ops::ReluGrad gradient;
  const T *s, *dy;
  T* dx;

  struct Nothing {};
  struct Loaded {
    Pack<T, N> s, dy;
  };
  __device__ Nothing Channels(int) const { return {}; }
  __device__ Loaded Load(int64_t i) const { return {PackAt<T, N>(s, i), PackAt<T, N>(dy, i)}; }
  __device__ void Add(const Nothing&, const Loaded& loaded, int64_t i,
                      PackSums<1, N, A>& sums) const {
    const WidePack<T, N> signs = Widen(loaded.s);
    WidePack<T, N> value = Widen(loaded.dy);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      value.values[k] = gradient.Apply(signs.values[k], value.values[k]);
      sums.values[0][k] += value.values[k];
    }
    StorePack(dx, i, value);
  }
};

Covered ChannelsOf(const TensorDesc& x) {
  return Covered(ops::CoveredView(x, {1, 1}));
}

template <typename T>
void RunByElements(const ops::ReluGrad& gradient, const Covered& view, const KernelContext& ctx) {
  const ReluGradElements<T> body{gradient, ctx.input(0).as<const T>(), ctx.input(1).as<const T>(),
                                 ctx.output(kDx).as<T>()};
  SumCovered<1, Accum<T>>(ctx, view, ctx.workspace, body, StoreSum{OutputGradient(ctx, kSum)});
}

// For any layout.
KernelOrRefusal MakeByElements(const ops::Fused& op, const KernelRequest& request) {
  const Covered view = ChannelsOf(request.inputs[0]);
  return VisitFloat(request.inputs[0].dtype, [&]<typename T>(TypeTag<T>) {
    return Kernel{"",
                  [=, gradient = op.Get<ops::ReluGrad>(0)](const KernelContext& ctx) {
                    RunByElements<T>(gradient, view, ctx);
                  },
                  SumWorkspace<1, Accum<T>>(view)};
  });
}

// By rows of channel packs, if they are aligned.
KernelOrRefusal MakeByRows(const ops::Fused& op, const KernelRequest& request) {
  const Covered view = ChannelsOf(request.inputs[0]);
  return VisitFloat(request.inputs[0].dtype, [&]<typename T>(TypeTag<T>) -> KernelOrRefusal {
    constexpr int N = kPackSize<T>;
    if (!view.has_columns() || view.covered % N != 0)
      return Refusal{StrCat("channels do not lie last in multiples of ", N)};
    const RowSums<1, N, Accum<T>> rows(view.outer, view.covered, request.device);
    return Kernel{"",
                  [=, gradient = op.Get<ops::ReluGrad>(0)](const KernelContext& ctx) {
                    const ReluGradRows<T, N> body{gradient, ctx.input(0).as<const T>(),
                                                  ctx.input(1).as<const T>(),
                                                  ctx.output(kDx).as<T>()};
                    if (!IsPackAligned<T, N>(body.s) || !IsPackAligned<T, N>(body.dy) ||
                        !IsPackAligned<T, N>(body.dx)) {
                      RunByElements<T>(gradient, view, ctx);
                      return;
                    }
                    rows.Run(ctx, ctx.workspace, body, StoreSum{OutputGradient(ctx, kSum)});
                  },
                  std::max(rows.workspace_bytes(), SumWorkspace<1, Accum<T>>(view))};
  });
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::Fused, "relu-grad-sum", KernelRank::kGood,
                              MakeByRows,
                              {.signatures = EverySignature(), .is_for = IsReluGradSum});
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::Fused, "relu-grad-sum-by-elements",
                              KernelRank::kGood, MakeByElements,
                              {.signatures = EverySignature(), .is_for = IsReluGradSum});

}  // namespace
}  // namespace caffe::cuda
