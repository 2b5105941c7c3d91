// The kernels around cuDNN and cuBLASLt, on emulated grids.
#include "caffe/cuda/matrix_kernels.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace caffe::cuda {
namespace {

class CudaMatrixKernelsTest : public ::testing::Test {
 protected:
  CudaMatrixKernelsTest() { context_.stream = &device_->compute_stream(); }

  static std::vector<float> Counted(size_t count) {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), 1.f);
    return values;
  }
  static Matrices Of(std::vector<float>& values) { return {values.data(), DType::kFloat}; }

  const std::shared_ptr<Device> device_ = MakeDevice(DeviceKind::kCuda);
  KernelContext context_;
};

TEST_F(CudaMatrixKernelsTest, TransposesEachMatrix) {
  constexpr int64_t kCount = 3;
  for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{
           {35, 70}, {9, 40}, {3, 300}, {300, 3}, {8, 8}, {1, 5}}) {
    std::vector<float> from = Counted(kCount * rows * columns), to(from.size(), 1000);
    for (const bool adds : {false, true}) {
      TransposeMatrices(context_, Of(from), kCount, rows, columns, adds, Of(to));
      device_->Synchronize();
      for (int64_t i = 0; i < kCount; ++i) {
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t c = 0; c < columns; ++c) {
            const float element = from[(i * rows + r) * columns + c];
            ASSERT_EQ(to[(i * columns + c) * rows + r], adds ? 2 * element : element)
                << rows << " x " << columns;
          }
        }
      }
    }
  }
}

TEST_F(CudaMatrixKernelsTest, TransposingConverts) {
  std::vector<float16> from = {float16(1.f), float16(2.f), float16(3.f), float16(4.f)};
  std::vector<float> to(4);
  TransposeMatrices(context_, {from.data(), DType::kFloat16}, 1, 2, 2, false, Of(to));
  device_->Synchronize();
  EXPECT_EQ(to, (std::vector<float>{1, 3, 2, 4}));
}

TEST_F(CudaMatrixKernelsTest, SumsChannels) {
  for (const ChannelExtents& of :
       {ChannelExtents{1, 40, 1}, ChannelExtents{5000, 40, 1}, ChannelExtents{7, 256, 1},
        ChannelExtents{3, 5, 700}, ChannelExtents{2, 64, 33}}) {
    const int64_t count = of.outer * of.inner;
    std::vector<float> tensor(count * of.channels), sums(of.channels, 10);
    for (size_t i = 0; i < tensor.size(); ++i)
      tensor[i] = static_cast<float>(static_cast<int64_t>(i) / of.inner % of.channels);
    std::vector<char> workspace(SumChannelsWorkspace(of) + 16);
    for (const bool adds : {false, true}) {
      SumChannels(context_, Of(tensor), of, adds, Of(sums), workspace.data());
      device_->Synchronize();
      for (int64_t c = 0; c < of.channels; ++c)
        ASSERT_EQ(sums[c], static_cast<float>(count * c * (adds ? 2 : 1))) << of.outer << " " << c;
    }
  }
}

TEST_F(CudaMatrixKernelsTest, AddsBiasAndAppliesRelu) {
  std::vector<float> bias = {1, -10};
  // Channels-last, two pixels.
  std::vector<float> y = {1, 2, -3, 30};
  AddBiasAndRelu(context_, {.bias = Of(bias), .channels = 2, .negative_slope = 0.5}, 4, Of(y));
  device_->Synchronize();
  EXPECT_EQ(y, (std::vector<float>{2, -4, -1, 20}));
  // Plain, two channels of two pixels, without ReLU.
  y = {1, 2, -3, 30};
  AddBiasAndRelu(context_, {.bias = Of(bias), .channels = 2, .inner = 2}, 4, Of(y));
  device_->Synchronize();
  EXPECT_EQ(y, (std::vector<float>{2, 3, -13, 20}));
  // ReLU only.
  y = {1, -2};
  AddBiasAndRelu(context_, {.negative_slope = 0}, 2, Of(y));
  device_->Synchronize();
  EXPECT_EQ(y, (std::vector<float>{1, 0}));
}

TEST_F(CudaMatrixKernelsTest, AddsBiasAndAppliesReluByPacks) {
  constexpr int64_t kPixels = 3000, kChannels = 24;
  std::vector<float> bias = Counted(kChannels), y = Counted(kPixels * kChannels), want = y;
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = want[i] = (i % 3 == 0 ? -1.f : 1.f) * y[i];
    want[i] += bias[i % kChannels];
    want[i] *= want[i] > 0 ? 1.f : 0.5f;
  }
  const auto count = static_cast<int64_t>(y.size());
  AddBiasAndRelu(context_, {.bias = Of(bias), .channels = kChannels, .negative_slope = 0.5}, count,
                 Of(y));
  device_->Synchronize();
  EXPECT_EQ(y, want);
  for (float& value : want) value = std::max(value, 0.f);
  AddBiasAndRelu(context_, {.negative_slope = 0}, count, Of(y));
  device_->Synchronize();
  EXPECT_EQ(y, want);
}

}  // namespace
}  // namespace caffe::cuda
