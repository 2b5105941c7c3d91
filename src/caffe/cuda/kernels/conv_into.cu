// Copies some channels into a larger tensor: used if cuDNN has no engine that writes them there
// (conv_cudnn.cpp).
#include "caffe/cuda/channel_part.hpp"
#include "caffe/cuda/entries.hpp"
#include "caffe/cuda/kernels/channel_sums.cuh"
#include "caffe/cuda/vendor_types.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/fused_in_turn.hpp"

namespace caffe::cuda {
namespace {

using ops::InsertChannels;

// Copies packs of N neighbouring channels of the part to the same channels of the whole.
template <typename T, int N>
struct CopyPart {
  const T* part;
  int64_t row, whole_row, offset;  // in packs
  T* whole;

  __device__ void operator()(int64_t i) const {
    int64_t within;
    const int64_t outer = Divide(i, row, &within);
    reinterpret_cast<Pack<T, N>*>(whole)[outer * whole_row + offset + within] =
        PackAt<T, N>(part, i);
  }
};

template <typename T>
void CopyIntoWhole(const KernelContext& ctx, const TensorView& part, int64_t offset) {
  const TensorView& whole = ctx.output(0);
  const Covered from = ChannelsOf(part), to = ChannelsOf(whole);
  const int64_t row = from.covered * from.inner, whole_row = to.covered * to.inner;
  const int64_t begin = offset * to.inner;
  constexpr int N = kPackSize<T>;
  const auto run = [&]<int kPack>(std::integral_constant<int, kPack>) {
    ForEach(ctx, part.count() / kPack,
            CopyPart<T, kPack>{part.as<const T>(), row / kPack, whole_row / kPack, begin / kPack,
                               whole.as<T>()});
  };
  const bool has_packs = row % N == 0 && whole_row % N == 0 && begin % N == 0 &&
                         AreAligned<T>({part.data, whole.data});
  has_packs ? run(std::integral_constant<int, N>{}) : run(std::integral_constant<int, 1>{});
}

void Insert(const InsertChannels& op, const KernelContext& ctx) {
  KeepOtherChannels(ctx, InsertChannels::kWhole);
  const TensorView& part = ctx.input(InsertChannels::kPart);
  VisitFloat(part.dtype, [&]<typename T>(TypeTag<T>) { CopyIntoWhole<T>(ctx, part, op.offset); });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, InsertChannels, Insert);
// For convolutions whose engine fails its check.
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::Fused, "conv-into", KernelRank::kGood,
                              ops::MakeInTurn,
                              {.signatures = {{DType::kFloat, DType::kFloat},
                                              {DType::kFloat16, DType::kFloat},
                                              {DType::kBFloat16, DType::kFloat}},
                               .is_for = IsConvInto});

}  // namespace

bool IsConvInto(const Op& op) {
  const auto& region = *op.As<ops::Fused>();
  return region.Is({ops::Conv::kName, InsertChannels::kName}) &&
         (region.Get<ops::Conv>(0).epilogue.empty() ||
          IsReluAlone(region.Get<ops::Conv>(0).epilogue));
}

void KeepOtherChannels(const KernelContext& ctx, int whole) {
  if (!ctx.has_input(whole)) return;
  const TensorView &from = ctx.input(whole), &to = ctx.output(0);
  if (from.data != to.data) ctx.stream->Copy(to.data, from.data, to.bytes());
}

}  // namespace caffe::cuda
