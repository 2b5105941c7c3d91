#include "caffe/cuda/gradient_entries.cuh"

namespace caffe::cuda {
namespace {

// Processes the first packs * N elements as packs, the rest one by one.
template <typename T, int N>
__global__ void __launch_bounds__(kBlockThreads)
    ApplyKernel(GradientEntries<T> entries, int64_t packs, int64_t count, T* dx) {
  for (int64_t i = GlobalThread(); i < packs; i += GridThreads())
    StorePack(dx, i, entries.ApplyPack(i, Widen(Pack<T, N>(PackAt<T, N>(dx, i)))));
  for (int64_t i = packs * N + GlobalThread(); i < count; i += GridThreads())
    dx[i] = T(entries.Apply(i, Wide(dx[i])));
}

}  // namespace

void ApplyGradientEpilogue(const KernelContext& ctx, const ops::Epilogue& epilogue) {
  const TensorView& dx = ctx.output(0);
  VisitFloat(dx.dtype, [&]<typename T>(TypeTag<T>) {
    constexpr int N = kPackSize<T>;
    const GradientEntries<T> entries(ctx, epilogue);
    const bool is_aligned = IsPackAligned<T, N>(dx.as<T>()) && entries.template IsAligned<N>();
    const int64_t packs = is_aligned ? dx.count() / N : 0;
    Launch(ctx, ApplyKernel<T, N>, BlocksFor(is_aligned ? (dx.count() + N - 1) / N : dx.count()),
           kBlockThreads, entries, packs, dx.count(), dx.as<T>());
  });
}

}  // namespace caffe::cuda
