#include <algorithm>

#include "caffe/cuda/channel_statistics.hpp"
#include "caffe/cuda/kernels/batch_norm_rows.cuh"
#include "caffe/cuda/kernels/channel_sums.cuh"
#include "caffe/cuda/kernels/running_statistics.cuh"
#include "caffe/ops/fused_in_turn.hpp"

namespace caffe::cuda {
namespace {

// Computes statistics from sums relative to the channel's first element.
template <typename T>
struct StoreStatistics {
  using A = Accum<T>;
  const T* x;
  int64_t inner;
  A count;
  Numbers mean, variance;

  __device__ void operator()(int64_t c, const Sums<2, A>& sums) const {
    const A deviation = sums.values[0] / count;
    const A square = sums.values[1] / count - deviation * deviation;
    mean.Set(c, Wide(x[c * inner]) + deviation);
    variance.Set(c, square > A(0) ? square : A(0));
  }
};

// The smallest variance, relative to the mean's square, that is computed from float sums: below it
// their difference has lost most of its digits.
constexpr double kLeastShare = 1e-4;

// A block per channel. If the sums do not determine the variance, the block sums the channel's
// elements again, relative to the first of them.
template <typename T>
struct StatisticsOfChannel {
  using A = Accum<T>;
  const float *sums, *squares;
  const T* y;
  Covered view;
  Numbers mean, variance;
  RunningStatistics running;

  struct Moments {
    double center, square;
  };

  template <typename Group>
  __device__ void operator()(int64_t c, const Group& group) const {
    Moments moments = OfSums(c);
    if (moments.square < kLeastShare * moments.center * moments.center)
      moments = OfElements(c, group);
    if (group.rank() != 0) return;
    mean.Set(c, moments.center);
    variance.Set(c, moments.square < 0 ? 0.0 : moments.square);  // NaN stays NaN
    running.Update(c);
  }

 private:
  __device__ int64_t length() const { return view.outer * view.inner; }
  __device__ double count() const { return static_cast<double>(length()); }
  __device__ Moments OfSums(int64_t c) const {
    const double center = static_cast<double>(sums[c]) / count();
    return {center, static_cast<double>(squares[c]) / count() - center * center};
  }
  template <typename Group>
  __device__ Moments OfElements(int64_t c, const Group& group) const {
    const A first = Wide(y[c * view.inner]);
    A sum = 0, square = 0;
    for (int64_t i = group.rank(); i < length(); i += group.size()) {
      int64_t within;
      const int64_t row = Divide(i, view.inner, &within);
      const A deviation = Wide(y[(row * view.covered + c) * view.inner + within]) - first;
      sum += deviation;
      square += deviation * deviation;
    }
    const double deviation = static_cast<double>(group.Reduce(Sum{}, sum)) / count();
    return {static_cast<double>(first) + deviation,
            static_cast<double>(group.Reduce(Sum{}, square)) / count() - deviation * deviation};
  }
};

// One pass over x.
KernelOrRefusal MakeChannelStatistics(const ops::ChannelStatistics&, const KernelRequest& request) {
  using Statistics = ops::ChannelStatistics;
  const Covered view = ChannelsOf(request.inputs[0]);
  return VisitFloat(request.inputs[0].dtype, [&]<typename T>(TypeTag<T>) {
    const ChannelSums<T> sums(view, request.device);
    const auto run = [=](const KernelContext& ctx) {
      const T* x = ctx.input(0).as<const T>();
      const StoreStatistics<T> store{x, view.inner, static_cast<Accum<T>>(view.length()),
                                     OutputNumbers(ctx, Statistics::kMean),
                                     OutputNumbers(ctx, Statistics::kVariance)};
      if (HasRows<T>(view) && AreAligned<T>({x})) {
        sums.ByRows(ctx, ctx.workspace, MomentsOfRows<T, kPackSize<T>>{x}, store);
      } else {
        sums.ByElements(ctx, ctx.workspace, AddMoments<T>{x, view.inner}, store);
      }
    };
    return Kernel{"", run, sums.workspace_bytes()};
  });
}

// Engines that sum statistics have windows of at most so many pixels along an axis.
constexpr int64_t kWidestWindow = 5;

// Engines that sum want the channels of 16-bit tensors in whole packs of 16 bytes.
bool HasPackedChannels(int64_t channels) {
  return channels % 8 == 0;
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::ChannelStatistics,
                              "channel-statistics-reference", KernelRank::kReference,
                              MakeChannelStatistics);
// For convolutions whose engine fails its check.
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::Fused, "conv-statistics", KernelRank::kGood,
                              ops::MakeInTurn,
                              {.signatures = {{DType::kFloat16, DType::kFloat}},
                               .is_for = ConvStatistics::IsFor,
                               .why_not = ConvStatistics::WhyNot});

}  // namespace

ConvStatistics::ConvStatistics(const ops::Fused& region) : conv(region.Get<ops::Conv>(0)) {
  if (region.members.size() > 2) running = region.Get<ops::UpdateRunningStatistics>(2);
}

bool ConvStatistics::IsFor(const Op& op) {
  const auto& region = *op.As<ops::Fused>();
  constexpr std::string_view conv = ops::Conv::kName, statistics = ops::ChannelStatistics::kName;
  return region.Is({conv, statistics}) ||
         region.Is({conv, statistics, ops::UpdateRunningStatistics::kName});
}

std::string ConvStatistics::WhyNot(const Op& op, std::span<const OperandDesc> inputs,
                                   const Device&) {
  const ConvStatistics region(*op.As<ops::Fused>());
  const ops::ConvGeometry& geometry = region.conv.geometry;
  const bool has_bias = inputs.size() > ops::Conv::kBias && inputs[ops::Conv::kBias].present;
  if (has_bias || !region.conv.epilogue.empty()) return "the convolution has a bias or an epilogue";
  if (geometry.group != 1) return "the convolution has groups";
  if (geometry.spatial_axes() != 2) return "only images";
  if (std::ranges::max(geometry.kernel) > kWidestWindow)
    return StrCat("a window of more than ", kWidestWindow, " pixels");
  if (!HasPackedChannels(inputs[kX].shape[1]) || !HasPackedChannels(inputs[kW].shape[0]))
    return "channels that are not a multiple of 8";
  return "";
}

void StatisticsOfSums(const ConvStatistics& op, const KernelContext& ctx, const float* sums,
                      const float* squares) {
  const TensorView& y = ctx.output(ConvStatistics::kY);
  const Covered view = ChannelsOf(y);
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    ForBlocks(ctx, view.covered,
              StatisticsOfChannel<T>{
                  sums, squares, y.as<const T>(), view, OutputNumbers(ctx, ConvStatistics::kMean),
                  OutputNumbers(ctx, ConvStatistics::kVariance), RunningStatistics::Of(op, ctx)});
  });
}

}  // namespace caffe::cuda
