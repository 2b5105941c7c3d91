#include "caffe/core/philox.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace caffe {
namespace {

using Block = std::array<uint32_t, 4>;

// The known answers that the authors of Philox publish with Random123.
TEST(PhiloxTest, KnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(Philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(PhiloxTest, StreamsSeedsAndIterationsDiffer) {
  const Block block = RandomStream(1, 2).Block(3, 4);
  EXPECT_EQ(block, RandomStream(1, 2).Block(3, 4));
  EXPECT_NE(block, RandomStream(2, 2).Block(3, 4));
  EXPECT_NE(block, RandomStream(1, 3).Block(3, 4));
  EXPECT_NE(block, RandomStream(1, 2).Block(4, 4));
  EXPECT_NE(block, RandomStream(1, 2).Block(3, 5));
  EXPECT_NE(block, RandomStream(1 + (uint64_t{1} << 32), 2).Block(3, 4));
  EXPECT_NE(block, RandomStream(1, 2 + (uint64_t{1} << 32)).Block(3, 4));
}

TEST(PhiloxTest, BitsAreTheBlocksInOrder) {
  const RandomStream random(7, StreamOf("conv1"));
  for (uint64_t i = 0; i < 12; ++i) EXPECT_EQ(random.Bits(i, 9), random.Block(i / 4, 9)[i % 4]);
}

TEST(PhiloxTest, Conversions) {
  EXPECT_EQ(ToUniform(0), 0.0f);
  EXPECT_LT(ToUniform(0xffffffff), 1.0f);
  EXPECT_EQ(ToRange(0, 10), 0u);
  EXPECT_EQ(ToRange(0xffffffff, 10), 9u);
  EXPECT_TRUE(std::isfinite(ToNormal(0xffffffff, 0)[0]));
  double sum = 0, squares = 0;
  const RandomStream random(1, 1);
  constexpr int kBlocks = 20000;
  for (int i = 0; i < kBlocks; ++i) {
    const Block bits = random.Block(i);
    for (const float x : ToNormal(bits[0], bits[1])) sum += x, squares += x * x;
  }
  EXPECT_NEAR(sum / (2 * kBlocks), 0, 0.02);
  EXPECT_NEAR(squares / (2 * kBlocks), 1, 0.03);
}

}  // namespace
}  // namespace caffe
