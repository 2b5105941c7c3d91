#include "caffe/cuda/channel_statistics.hpp"
#include "caffe/cuda/kernels/batch_norm_rows.cuh"
#include "caffe/cuda/kernels/channel_sums.cuh"
#include "caffe/cuda/kernels/running_statistics.cuh"

namespace caffe::cuda {
namespace {

using ops::ConvStatistics;

// From sums about the channel's first element.
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

struct StatisticsOfChannel {
  const float *sums, *squares;
  double count;
  Numbers mean, variance;
  RunningStatistics running;

  __device__ void operator()(int64_t c) const {
    const double center = static_cast<double>(sums[c]) / count;
    const double square = static_cast<double>(squares[c]) / count - center * center;
    mean.Set(c, center);
    variance.Set(c, square < 0 ? 0.0 : square);  // NaN stays
    running.Update(c);
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
  const Covered view = ChannelsOf(ctx.output(ConvStatistics::kY));
  ForEach(ctx, view.covered,
          StatisticsOfChannel{sums, squares, static_cast<double>(view.length()),
                              OutputNumbers(ctx, ConvStatistics::kMean),
                              OutputNumbers(ctx, ConvStatistics::kVariance),
                              RunningStatistics::Of(op, ctx)});
}

}  // namespace caffe::cuda
