#include "caffe/core/instructions.hpp"

#include <gtest/gtest.h>

#include "caffe/cpu/processor.hpp"

namespace caffe {
namespace {

TEST(InstructionsTest, InstructionsHaveNames) {
  EXPECT_EQ(NameOf({.avx2 = true}), "AVX2");
  EXPECT_EQ(NameOf({.avx2 = true, .avx512 = true}), "AVX-512");
  EXPECT_EQ(NameOf({.avx2 = true, .avx512 = true, .bfloat16 = true}), "AVX-512 with BF16");
  EXPECT_EQ(NameOf({.avx512 = true, .bfloat16 = true, .half = true}), "AVX-512 with BF16 and FP16");
}

TEST(InstructionsTest, TilesThatTheSystemRefusesAreNamedAsSuch) {
  Instructions has{.avx2 = true, .avx512 = true, .bfloat16 = true, .tiles = true};
  EXPECT_EQ(NameOf(has), "AVX-512 with BF16, AMX (not used: the system refuses it)");
  has.may_use_tiles = true;
  EXPECT_EQ(NameOf(has), "AVX-512 with BF16, AMX");
}

TEST(InstructionsTest, ThisProcessorHasWhatKernelsAskFor) {
  const Instructions has = InstructionsOfThisProcessor();
  EXPECT_EQ(has.bfloat16, cpu::MultipliesBFloat16());
  EXPECT_FALSE(has.may_use_tiles && !has.tiles);
}

}  // namespace
}  // namespace caffe
