// Convolutions of 3x3 by Winograd's algorithm, and their gradients.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "caffe/core/threads_for_now.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/kernel.hpp"
#include "tests/cpu/fault_of_kernel.hpp"

namespace caffe::cpu {
namespace {

struct WinogradCase {
  std::vector<int64_t> x;
  int64_t outputs;
  std::vector<int64_t> pad = {1, 1};
  DType type = DType::kFloat;

  ops::ConvGeometry geometry() const { return {{3, 3}, {1, 1}, pad, {1, 1}, 1}; }
  OperandDesc X() const { return {{Shape(x), type, Layout::kChannelsLast}}; }
  OperandDesc Y() const {
    const ops::ConvGeometry g = geometry();
    return {{Shape{x[0], outputs, g.OutputSize(0, x[2]), g.OutputSize(1, x[3])}, type,
             Layout::kChannelsLast}};
  }
  OperandDesc W(DType of) const { return {{Shape{outputs, x[1], 3, 3}, of}}; }
  OperandDesc Bias() const { return {{Shape{outputs}, DType::kFloat}}; }
};

std::string OfForward(const WinogradCase& of) {
  return testing::FaultOfKernel("conv-by-winograd", Op(ops::Conv{of.geometry()}),
                                {of.X(), of.W(of.type), of.Bias()}, {of.Y()});
}
std::string OfGradData(const WinogradCase& of) {
  return testing::FaultOfKernel("conv-grad-data-by-winograd", Op(ops::ConvGradData{of.geometry()}),
                                {of.Y(), of.W(of.type)}, {of.X()});
}
std::string OfGradWeights(const WinogradCase& of) {
  return testing::FaultOfKernel("conv-grad-weights-by-winograd",
                                Op(ops::ConvGradWeights{of.geometry()}), {of.X(), of.Y()},
                                {of.W(DType::kFloat), of.Bias()});
}

const std::vector<WinogradCase> kCases = {{{2, 32, 9, 12}, 48, {0, 2}},
                                          {{3, 64, 8, 7}, 32, {2, 1}},
                                          {{1, 48, 16, 16}, 48, {1, 0}},
                                          {{1, 32, 25, 21}, 480},
                                          {{2, 480, 13, 25}, 32}};

// Odd and even sizes, paddings of 0 to 2, more and fewer outputs than channels, and so many tiles
// that they are multiplied in parts of which the last one is smaller.
TEST(WinogradTest, AllPassesAreRight) {
  const ThreadsForNow two(2);  // with more, images are too small
  for (const WinogradCase& of : kCases) {
    SCOPED_TRACE(of.X().shape.ToString() + " -> " + of.Y().shape.ToString());
    EXPECT_EQ(OfForward(of), "");
    EXPECT_EQ(OfGradData(of), "");
    EXPECT_EQ(OfGradWeights(of), "");
  }
}

const std::vector<WinogradCase> kLargeCases = {{{4, 64, 23, 26}, 64},
                                               {{3, 96, 21, 31}, 64, {2, 0}},
                                               {{2, 64, 30, 30}, 160, {0, 1}},
                                               {{1, 64, 57, 55}, 256}};

// The same in bfloat16, whose tiles have 4x4 results: edges cut off 1 to 3 of them.
TEST(WinogradTest, AllPassesAreRightInBFloat16) {
  const ThreadsForNow two(2);
  for (WinogradCase of : kLargeCases) {
    of.type = DType::kBFloat16;
    SCOPED_TRACE(of.X().shape.ToString() + " -> " + of.Y().shape.ToString());
    const std::string forward = OfForward(of);
    if (forward.find("AMX") != std::string::npos) GTEST_SKIP() << forward;
    EXPECT_EQ(forward, "");
    EXPECT_EQ(OfGradData(of), "");
    EXPECT_EQ(OfGradWeights(of), "");
  }
}

TEST(WinogradTest, RefusesWhatIsSlower) {
  const WinogradCase few = {{1, 128, 8, 8}, 128};
  EXPECT_NE(OfForward(few), "");
  EXPECT_NE(OfGradData(few), "");
  EXPECT_NE(OfGradWeights(few), "");
  // Tiles of 4x4 cover 16x16 results, of which there are 13x13.
  EXPECT_NE(OfForward({{8, 64, 13, 13}, 256, {1, 1}, DType::kBFloat16}), "");
  const WinogradCase far = {{2, 64, 16, 16}, 64, {3, 3}};
  EXPECT_NE(OfGradData(far), "");
}

}  // namespace
}  // namespace caffe::cpu
