// Mean and variance from a convolution's float sums, as an engine of cuDNN writes them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "caffe/cuda/channel_statistics.hpp"
#include "tests/support/fused_regions.hpp"

namespace caffe::cuda {
namespace {

constexpr int64_t kChannels = 8;

// A tensor of channels, and the memory for its statistics.
class Statistics {
 public:
  Statistics(Layout layout, double mean) : images_(MakeImages(layout)) {
    std::mt19937 random(7);
    std::normal_distribution<double> noise(mean, 1);
    values_.resize(static_cast<size_t>(images_.count()));
    for (float16& value : values_) value = float16(static_cast<float>(noise(random)));
    for (int64_t i = 0; i < images_.count(); ++i) {
      const float value = ValueAt(i);
      sums_[ChannelOf(i)] += value;
      squares_[ChannelOf(i)] += value * value;
    }
  }

  void Spoil() { std::ranges::fill(values_, float16(std::numeric_limits<float>::quiet_NaN())); }

  void Make() {
    const std::shared_ptr<Device> device = MakeDevice(DeviceKind::kCuda);
    device->MakeCurrent();
    std::vector<TensorView> outputs = {View(images_, values_.data()), View(Channels(), mean.data()),
                                       View(Channels(), variance.data())};
    KernelContext ctx;
    ctx.outputs = outputs;
    ctx.stream = &device->compute_stream();
    StatisticsOfSums(ConvStatistics(testing::StatisticsOf({})), ctx, sums_.data(), squares_.data());
    device->Synchronize();
  }

  // Computed in double, relative to the mean.
  double ExactMean(int64_t channel) const {
    return Average(channel, [](double value) { return value; });
  }
  double ExactVariance(int64_t channel) const {
    const double center = ExactMean(channel);
    return Average(channel, [&](double value) { return (value - center) * (value - center); });
  }
  // The variance as the difference of the sums.
  double VarianceOfSums(int64_t channel) const {
    const double count = static_cast<double>(images_.count() / kChannels);
    const double center = sums_[channel] / count;
    return squares_[channel] / count - center * center;
  }

  std::vector<float> mean = std::vector<float>(kChannels), variance = std::vector<float>(kChannels);

 private:
  static TensorDesc MakeImages(Layout layout) {
    TensorDesc desc;
    desc.shape = Shape({4, kChannels, 20, 20});
    desc.dtype = DType::kFloat16;
    desc.layout = layout;
    return desc;
  }
  static TensorDesc Channels() {
    TensorDesc desc;
    desc.shape = Shape({kChannels});
    desc.dtype = DType::kFloat;
    return desc;
  }
  static TensorView View(const TensorDesc& desc, void* data) {
    TensorView view;
    static_cast<TensorDesc&>(view) = desc;
    view.data = data;
    return view;
  }
  size_t ChannelOf(int64_t i) const {
    const int64_t inner = images_.layout == Layout::kPlain ? images_.shape.count(2) : 1;
    return static_cast<size_t>(i / inner % kChannels);
  }
  float ValueAt(int64_t i) const { return static_cast<float>(values_[static_cast<size_t>(i)]); }
  template <typename Fn>
  double Average(int64_t channel, const Fn& fn) const {
    double sum = 0;
    for (int64_t i = 0; i < images_.count(); ++i) {
      if (ChannelOf(i) == static_cast<size_t>(channel)) sum += fn(double{ValueAt(i)});
    }
    return sum * kChannels / static_cast<double>(images_.count());
  }

  const TensorDesc images_;
  std::vector<float16> values_;
  std::vector<float> sums_ = std::vector<float>(kChannels),
                     squares_ = std::vector<float>(kChannels);
};

class CudaStatisticsOfSumsTest : public ::testing::TestWithParam<Layout> {};

TEST_P(CudaStatisticsOfSumsTest, ALargeMeanCostsNoDigits) {
  Statistics statistics(GetParam(), 500);
  statistics.Make();
  double worst_of_sums = 0;
  for (int64_t c = 0; c < kChannels; ++c) {
    const double variance = statistics.ExactVariance(c);
    EXPECT_NEAR(statistics.variance[c], variance, 1e-4 * variance) << c;
    EXPECT_NEAR(statistics.mean[c], statistics.ExactMean(c), 1e-3) << c;
    worst_of_sums = std::max(worst_of_sums, std::abs(statistics.VarianceOfSums(c) / variance - 1));
  }
  EXPECT_GT(worst_of_sums, 0.05);  // the sums alone are not enough
}

TEST_P(CudaStatisticsOfSumsTest, OtherChannelsAreNotReadAgain) {
  Statistics statistics(GetParam(), 1);
  std::vector<double> means, variances;
  for (int64_t c = 0; c < kChannels; ++c) {
    means.push_back(statistics.ExactMean(c));
    variances.push_back(statistics.ExactVariance(c));
  }
  statistics.Spoil();
  statistics.Make();
  for (int64_t c = 0; c < kChannels; ++c) {
    EXPECT_NEAR(statistics.mean[c], means[c], 1e-5) << c;
    EXPECT_NEAR(statistics.variance[c], variances[c], 1e-4) << c;
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, CudaStatisticsOfSumsTest,
                         ::testing::Values(Layout::kPlain, Layout::kChannelsLast),
                         [](const auto& info) {
                           return info.param == Layout::kPlain ? "Plain" : "ChannelsLast";
                         });

}  // namespace
}  // namespace caffe::cuda
