#include "caffe/cuda/channel_statistics.hpp"
#include "caffe/cuda/kernels/batch_norm_rows.cuh"
#include "caffe/cuda/kernels/channel_sums.cuh"
#include "caffe/cuda/kernels/running_statistics.cuh"

namespace caffe::cuda {
namespace {

using ops::ConvStatistics;

// Computes statistics from sums relative to the channel's first element.
template <typename T>
struct StoreStatistics {
  using A = Accum<T>;
  const T* x;
  int64_t inner;
  A count;
  Numbers mean, variance;
  RunningStatistics running;

  __device__ void operator()(int64_t c, const Sums<2, A>& sums) const {
    const A deviation = sums.values[0] / count;
    const A square = sums.values[1] / count - deviation * deviation;
    mean.Set(c, Wide(x[c * inner]) + deviation);
    variance.Set(c, square > A(0) ? square : A(0));
    running.Update(c);
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

}  // namespace

ChannelStatistics::ChannelStatistics(const ConvStatistics& op, const TensorDesc& y,
                                     Device& device) {
  const Covered view = ChannelsOf(y);
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    const ChannelSums<T> sums(view, device);
    workspace_bytes_ = sums.workspace_bytes();
    run_ = [=](const KernelContext& ctx, void* workspace) {
      const T* data = ctx.output(ConvStatistics::kY).as<const T>();
      const StoreStatistics<T> store{data,
                                     view.inner,
                                     static_cast<Accum<T>>(view.length()),
                                     OutputNumbers(ctx, ConvStatistics::kMean),
                                     OutputNumbers(ctx, ConvStatistics::kVariance),
                                     RunningStatistics::Of(op, ctx)};
      if (HasRows<T>(view) && AreAligned<T>({data})) {
        sums.ByRows(ctx, workspace, MomentsOfRows<T, kPackSize<T>>{data}, store);
      } else {
        sums.ByElements(ctx, workspace, AddMoments<T>{data, view.inner}, store);
      }
    };
  });
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
