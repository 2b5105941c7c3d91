// Seed 1795407421 of geometry_fuzz: ROI pooling of a map without columns read beyond it.
#include <gtest/gtest.h>

#include <vector>

#include "caffe/ops/regions.hpp"

namespace caffe {
namespace {

ops::RegionSizes SizesWithoutPixels(int height, int width) {
  ops::RegionSizes sizes;
  sizes.regions = sizes.items = sizes.channels = sizes.cell_channels = 1;
  sizes.height = height;
  sizes.width = width;
  sizes.rows = sizes.columns = 1;
  return sizes;
}

// The memory at the place where the map would be.
const std::vector<float> kForeign(64, 7.0f);
const std::vector<float> kRois = {0, -0.5f, -0.5f, 1, 1};

TEST(RegionsOfAnEmptyMap, AreZero) {
  for (const auto& [height, width] : {std::pair(6, 0), std::pair(0, 6), std::pair(0, 0)}) {
    const ops::RegionSizes sizes = SizesWithoutPixels(height, width);
    const std::vector<float> winner = {0};  // from a step that had nothing to read
    EXPECT_EQ(ops::RegionMax(sizes).Element<float>(0, kForeign, kRois, winner), 0);
    EXPECT_EQ(ops::RegionAlign(sizes, 2).Element<float>(0, kForeign, kRois), 0);
  }
}

}  // namespace
}  // namespace caffe
