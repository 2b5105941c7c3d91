#include "caffe/cuda/map.cuh"
#include "caffe/cuda/numbers.cuh"
#include "caffe/cuda/reduce.cuh"
#include "caffe/ops/broadcast.hpp"

namespace caffe::cuda {
namespace {

// Processes N neighbours of one row of `inner`, or N neighbouring columns if inner == 1.
template <typename T, int N>
struct ScaleShiftPack {
  const T* x;
  T* y;
  Numbers scale, shift;
  int64_t covered, inner;

  __device__ void operator()(int64_t pack) const {
    using A = Accum<T>;
    const Pack<T, N> in = PackAt<T, N>(x, pack);
    Pack<T, N> out;
    const int64_t first = Remainder(Divide(pack * N, inner), covered);
    const int64_t step = inner == 1 ? 1 : 0;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const int64_t c = first + k * step;
      const A factor = scale.GetOr<A>(c, A(1)), offset = shift.GetOr<A>(c, A(0));
      out.values[k] = T(Wide(in.values[k]) * factor + offset);
    }
    reinterpret_cast<Pack<T, N>*>(y)[pack] = out;
  }
};

void ScaleAndShift(const ops::BroadcastAxes& axes, const KernelContext& ctx, const Numbers& scale,
                   const Numbers& shift) {
  const TensorView &x = ctx.input(0), &y = ctx.output(0);
  const ops::CoveredView view(x, axes);
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    constexpr int N = static_cast<int>(16 / sizeof(T));
    const auto run = [&]<int kPack>(std::integral_constant<int, kPack>) {
      ForEach(ctx, y.count() / kPack,
              ScaleShiftPack<T, kPack>{x.as<const T>(), y.as<T>(), scale, shift, view.covered,
                                       view.inner});
    };
    // A pack must not cross into the next row.
    const int64_t row = view.inner == 1 ? view.covered : view.inner;
    if (row % N == 0 && IsPackAligned<T, N>(x.as<T>()) && IsPackAligned<T, N>(y.as<T>())) {
      run(std::integral_constant<int, N>{});
    } else {
      run(std::integral_constant<int, 1>{});
    }
  });
}

void ScaleShift(const ops::ScaleShift& op, const KernelContext& ctx) {
  ScaleAndShift(op, ctx, InputNumbers(ctx, 1), InputNumbers(ctx, 2));
}
void AddBias(const ops::AddBias& op, const KernelContext& ctx) {
  ScaleAndShift(op, ctx, {}, InputNumbers(ctx, 1));
}

template <typename T, bool kHasFactor>
struct AddProduct {
  const T *x, *z;

  __device__ void operator()(int64_t, int64_t i, Sums<1, Accum<T>>& sums) const {
    sums.values[0] += kHasFactor ? Wide(x[i]) * Wide(z[i]) : Wide(x[i]);
  }
};

KernelOrRefusal MakeSumToAxes(const ops::SumToAxes& op, const KernelRequest& request) {
  const OperandDesc& x = request.inputs[0];
  const Covered view{ops::CoveredView(x, op)};
  return VisitFloat(x.dtype, [&]<typename T>(TypeTag<T>) {
    using A = Accum<T>;
    return Kernel{
        "",
        [view](const KernelContext& ctx) {
          const StoreSum store{OutputGradient(ctx, 0)};
          const T* x = ctx.input(0).as<const T>();
          if (ctx.has_input(1)) {
            SumCovered<1, A>(ctx, view, ctx.workspace,
                             AddProduct<T, true>{x, ctx.input(1).as<const T>()}, store);
          } else {
            SumCovered<1, A>(ctx, view, ctx.workspace, AddProduct<T, false>{x, nullptr}, store);
          }
        },
        SumWorkspace<1, A>(view)};
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::ScaleShift, ScaleShift);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::AddBias, AddBias);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::SumToAxes, "sum-to-axes",
                              KernelRank::kReference, MakeSumToAxes);

}  // namespace
}  // namespace caffe::cuda
