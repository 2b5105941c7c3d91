// The bytes that plans count in addition to reading each operand once.
#include "caffe/ops/read_again.hpp"

#include <gtest/gtest.h>

#include "caffe/ops/conv.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/norm.hpp"
#include "caffe/ops/pointwise.hpp"

namespace caffe::ops {
namespace {

const TensorDesc kData{Shape({2, 8, 5, 5}), DType::kBFloat16};
const TensorDesc kChannels{Shape({8}), DType::kFloat};
constexpr double kBytes = 2 * 8 * 5 * 5 * 2;

double Count(const Op& op, const std::vector<const TensorDesc*>& inputs,
             const std::vector<const TensorDesc*>& outputs) {
  return BytesReadAgain(op, inputs, outputs);
}

TEST(ReadAgainTest, MostOpsReadOnce) {
  EXPECT_EQ(Count(Relu(), {&kData}, {&kData}), 0);
}

TEST(ReadAgainTest, NormalisationReadsForTheSumsAndForTheResult) {
  const TensorDesc* x = &kData;
  const TensorDesc* c = &kChannels;
  EXPECT_EQ(Count(BatchNorm{}, {x, c, c, x}, {x, c, c}), kBytes);
  EXPECT_EQ(Count(BatchNormGrad{}, {x, c, c, x}, {x}), 2 * kBytes);
  EXPECT_EQ(Count(BatchNormGrad{}, {x, c, c, x, c, x}, {x, c, c}), 3 * kBytes);
  // The second pass reads dresidual instead of dy and y.
  EXPECT_EQ(Count(BatchNormGrad{}, {x, c, c, x, c, x}, {x, c, c, x}), 2 * kBytes);
  EXPECT_EQ(Count(BatchNormGrad{}, {x, c, c, x}, {nullptr, c, c}), 0);
}

TEST(ReadAgainTest, ASliceReadsOnlyItsPart) {
  const TensorDesc whole{Shape({2, 24, 5, 5}), DType::kBFloat16};
  EXPECT_EQ(Count(SliceOf{.offset = 8}, {&whole}, {&kData}), kBytes - 3 * kBytes);
}

TEST(ReadAgainTest, TheGradientOfABiasIsAPassOfItsOwn) {
  const TensorDesc* x = &kData;
  const TensorDesc* c = &kChannels;
  EXPECT_EQ(Count(ConvGradWeights{}, {x, x}, {x, c}), kBytes);
  EXPECT_EQ(Count(ConvGradWeights{}, {x, x}, {x, nullptr}), 0);
  EXPECT_EQ(Count(ConvGradWeights{}, {x, x}, {nullptr, c}), 0);
}

}  // namespace
}  // namespace caffe::ops
