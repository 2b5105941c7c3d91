// Compares layers that read regions of interest with loops written from the papers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "caffe/blob.hpp"
#include "caffe/error.hpp"
#include "caffe/net.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using ::testing::HasSubstr;
using testing::NetOf;

constexpr int kHeight = 9, kWidth = 12;

// Item, x1, y1, x2, y2 in an image eight times as large as the map.
using Region = std::array<float, 5>;
const std::vector<Region> kRegions = {{0, 0, 0, 95, 71},     {1, 12, 20, 51, 60},
                                      {1, -30, -14, 40, 31}, {0, 61, 40, 120, 99},
                                      {0, 44, 44, 44, 44},   {1, 200, 200, 230, 240}};

float At(const std::vector<float>& map, int channels, int item, int channel, int h, int w) {
  return map[((item * channels + channel) * kHeight + h) * kWidth + w];
}

class RegionTest : public ::testing::Test {
 protected:
  // The top of a layer on a map with this many channels.
  std::vector<float> Run(const std::string& layer, int channels,
                         const std::vector<Region>& regions = kRegions) {
    const auto net = NetOf(
        "layer { name: 'in' type: 'Input' top: 'map' top: 'rois' input_param { shape { dim: 2 "
        "dim: " +
        std::to_string(channels) +
        " dim: 9 dim: 12 } shape { dim: " + std::to_string(regions.size()) +
        " dim: 5 } } } layer { name: 'l' bottom: 'map' bottom: 'rois' top: 'y' " + layer +
        " } force_backward: true");
    float* map = net->blob_by_name("map")->mutable_cpu_data<float>();
    map_.resize(net->blob_by_name("map")->count());
    for (size_t i = 0; i < map_.size(); ++i) {
      map[i] = map_[i] = std::sin(static_cast<float>(i * i % 1013));
    }
    float* rois = net->blob_by_name("rois")->mutable_cpu_data<float>();
    for (const Region& region : regions) rois = std::copy(region.begin(), region.end(), rois);
    net->Forward();
    const int64_t cells = net->blob_by_name("y")->count();
    std::fill_n(net->blob_by_name("y")->mutable_cpu_diff<float>(), cells, 1.0f);
    net->Backward();
    const float* dx = net->blob_by_name("map")->cpu_diff<float>();
    slopes_.assign(dx, dx + map_.size());
    const Blob& y = *net->blob_by_name("y");
    return {y.cpu_data<float>(), y.cpu_data<float>() + y.count()};
  }

  std::vector<float> map_, slopes_;  // the map, and its gradient for a top's of 1
};

// Compares each element, in order, with want(region, channel, row, column).
void ExpectCells(const std::vector<float>& found, int channels, int rows, int columns,
                 const std::function<double(const Region&, int, int, int)>& want) {
  ASSERT_EQ(found.size(), kRegions.size() * channels * rows * columns);
  size_t i = 0;
  for (const Region& region : kRegions) {
    for (int c = 0; c < channels; ++c) {
      for (int row = 0; row < rows; ++row) {
        for (int column = 0; column < columns; ++column, ++i) {
          EXPECT_NEAR(found[i], want(region, c, row, column), 2e-6)
              << "box " << &region - kRegions.data() << ", channel " << c << ", cell " << row
              << ", " << column;
        }
      }
    }
  }
}

TEST_F(RegionTest, ROIPoolingTakesTheLargestOfRoundedCells) {
  const auto found = Run(
      "type: 'ROIPooling' roi_pooling_param { pooled_h: 3 pooled_w: 4 spatial_scale: 0.125 }", 2);
  ExpectCells(found, 2, 3, 4, [&](const Region& r, int c, int row, int column) {
    const int x1 = static_cast<int>(std::round(r[1] / 8)),
              y1 = static_cast<int>(std::round(r[2] / 8));
    const int w = std::max(static_cast<int>(std::round(r[3] / 8)) - x1 + 1, 1);
    const int h = std::max(static_cast<int>(std::round(r[4] / 8)) - y1 + 1, 1);
    double best = -HUGE_VAL;
    for (int y = 0; y < kHeight; ++y) {
      for (int x = 0; x < kWidth; ++x) {
        // A pixel belongs to every cell that covers a part of it.
        const bool in_row = (y - y1 + 1) * 3 > row * h && (y - y1) * 3 < (row + 1) * h;
        const bool in_column = (x - x1 + 1) * 4 > column * w && (x - x1) * 4 < (column + 1) * w;
        if (in_row && in_column) {
          best = std::max<double>(best, At(map_, 2, static_cast<int>(r[0]), c, y, x));
        }
      }
    }
    return std::isinf(best) ? 0 : best;
  });
}

TEST_F(RegionTest, PSROIPoolingAveragesChannelsOfTheCell) {
  const auto found = Run(
      "type: 'PSROIPooling' psroi_pooling_param { output_dim: 2 group_size: 3 spatial_scale: 0.125 "
      "}",
      18);
  ExpectCells(found, 2, 3, 3, [&](const Region& r, int c, int row, int column) {
    const double x1 = std::round(r[1]) / 8, x2 = (std::round(r[3]) + 1) / 8;
    const double y1 = std::round(r[2]) / 8, y2 = (std::round(r[4]) + 1) / 8;
    const double w = std::max(x2 - x1, 0.1) / 3, h = std::max(y2 - y1, 0.1) / 3;
    double sum = 0, count = 0;
    for (int y = 0; y < kHeight; ++y) {
      for (int x = 0; x < kWidth; ++x) {
        const bool in_row = y + 1 > y1 + row * h + 1e-6 && y < y1 + (row + 1) * h - 1e-6;
        const bool in_column = x + 1 > x1 + column * w + 1e-6 && x < x1 + (column + 1) * w - 1e-6;
        if (!in_row || !in_column) continue;
        sum += At(map_, 18, static_cast<int>(r[0]), (c * 3 + row) * 3 + column, y, x);
        ++count;
      }
    }
    return count == 0 ? 0 : sum / count;
  });
}

// The map at a position between pixels; within one pixel beyond the edge, the edge's value
// continues.
double Bilinear(const std::function<double(int, int)>& pixel, double y, double x) {
  if (y < -1 || y > kHeight || x < -1 || x > kWidth) return 0;
  y = std::clamp(y, 0.0, kHeight - 1.0), x = std::clamp(x, 0.0, kWidth - 1.0);
  double sum = 0;
  for (int h = 0; h < kHeight; ++h) {
    for (int w = 0; w < kWidth; ++w) {
      sum += std::max(0.0, 1 - std::abs(y - h)) * std::max(0.0, 1 - std::abs(x - w)) * pixel(h, w);
    }
  }
  return sum;
}

TEST_F(RegionTest, ROIAlignAveragesSamples) {
  for (const int ratio : {2, 3, 0}) {
    const auto found =
        Run("type: 'ROIAlign' roi_align_param { pooled_h: 3 pooled_w: 2 spatial_scale: 0.125 "
            "sampling_ratio: " +
                std::to_string(ratio) + " }",
            2);
    ExpectCells(found, 2, 3, 2, [&](const Region& r, int c, int row, int column) {
      const double h = std::max((r[4] - r[2]) / 8.0, 1.0) / 3;
      const double w = std::max((r[3] - r[1]) / 8.0, 1.0) / 2;
      const int down = ratio > 0 ? ratio : static_cast<int>(std::ceil(h));
      const int across = ratio > 0 ? ratio : static_cast<int>(std::ceil(w));
      double sum = 0;
      for (int i = 0; i < down; ++i) {
        for (int k = 0; k < across; ++k) {
          const auto pixel = [&](int y, int x) -> double {
            return At(map_, 2, static_cast<int>(r[0]), c, y, x);
          };
          sum += Bilinear(pixel, r[2] / 8.0 + (row + (i + 0.5) / down) * h,
                          r[1] / 8.0 + (column + (k + 0.5) / across) * w);
        }
      }
      return sum / (down * across);
    });
  }
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

const std::vector<std::pair<std::string, int>> kLayers = {
    {"type: 'ROIPooling' roi_pooling_param { pooled_h: 3 pooled_w: 4 spatial_scale: 0.125 }", 2},
    {"type: 'PSROIPooling' psroi_pooling_param { output_dim: 2 group_size: 3 spatial_scale: 0.125 "
     "}",
     18},
    {"type: 'ROIAlign' roi_align_param { pooled_h: 3 pooled_w: 2 spatial_scale: 0.125 "
     "sampling_ratio: 0 }",
     2},
    {"type: 'ROIAlign' roi_align_param { pooled_h: 3 pooled_w: 2 spatial_scale: 0.125 "
     "sampling_ratio: 2 }",
     2}};

TEST_F(RegionTest, BoxesWithoutEndAreEmpty) {
  const float far = std::numeric_limits<float>::max();
  const std::vector<Region> endless = {
      {0, 0, 0, kInfinity, 71},          {1, -kInfinity, 0, 95, 71},  {0, 0, kNaN, 95, 71},
      {1, -kInfinity, 0, kInfinity, 71}, {0, kNaN, kNaN, kNaN, kNaN}, {1, 0, -far, 95, far * 16}};
  for (const auto& [layer, channels] : kLayers) {
    for (const float value : Run(layer, channels, endless)) ASSERT_EQ(value, 0) << layer;
    for (const float slope : slopes_) ASSERT_EQ(slope, 0) << layer;
  }
}

TEST_F(RegionTest, BoxesOfOtherItemsAreNaN) {
  for (const auto& [layer, channels] : kLayers) {
    const auto found =
        Run(layer, channels,
            {{2, 0, 0, 95, 71}, {-1, 0, 0, 95, 71}, {kNaN, 0, 0, 95, 71}, {1e30f, 0, 0, 95, 71}});
    for (const float value : found) ASSERT_TRUE(std::isnan(value)) << layer;
    for (const float slope : slopes_) ASSERT_EQ(slope, 0) << layer;
  }
}

TEST_F(RegionTest, ROIAlignSkipsSamplesOutsideOfTheMap) {
  const std::string layer =
      "type: 'ROIAlign' roi_align_param { pooled_h: 1 pooled_w: 1 spatial_scale: 1 sampling_ratio: "
      "0 }";
  for (const float edge : {1e5f, 1e9f, 1e30f, 1e38f}) {
    const auto found = Run(layer, 1, {{0, -edge, -edge, edge, edge}, {1, 0, 0, edge, edge}});
    for (const float value : found) {
      EXPECT_TRUE(std::isfinite(value)) << edge;
      EXPECT_NEAR(value, 0, 1e-4) << edge;
    }
    for (const float slope : slopes_) ASSERT_TRUE(std::isfinite(slope)) << edge;
  }
  // A sample in the centre of each of 1000 x 1000 pixels, few of them in the map.
  const auto found = Run(layer, 1, {{0, 0, 0, 1000, 1000}});
  double sum = 0;
  const auto pixel = [&](int y, int x) -> double { return At(map_, 1, 0, 0, y, x); };
  for (int y = 0; y <= kHeight; ++y) {
    for (int x = 0; x <= kWidth; ++x) {
      if (y + 0.5 <= kHeight && x + 0.5 <= kWidth) sum += Bilinear(pixel, y + 0.5, x + 0.5);
    }
  }
  EXPECT_NEAR(found[0], sum / 1e6, 1e-9);
}

TEST_F(RegionTest, SaysWhatIsWrong) {
  const auto refuses = [&](const std::string& layer, int channels, const std::string& reason) {
    EXPECT_THAT(ErrorText<InvalidArgument>([&] { Run(layer, channels); }), HasSubstr(reason));
  };
  refuses("type: 'ROIPooling'", 2, "pooled_h and pooled_w are 0 and 0");
  refuses("type: 'ROIPooling' roi_pooling_param { pooled_h: 2 pooled_w: 2 spatial_scale: -1 }", 2,
          "spatial_scale is -1");
  refuses("type: 'ROIAlign' roi_align_param { pooled_h: 2 pooled_w: 2 sampling_ratio: -1 }", 2,
          "sampling_ratio is -1");
  refuses(
      "type: 'PSROIPooling' psroi_pooling_param { output_dim: 2 group_size: 3 spatial_scale: 1 }",
      17, "bottom 0 has 17 channels; output_dim 2 and group_size 3 need 18");
  EXPECT_THAT(
      ErrorText<InvalidArgument>([] {
        NetOf(
            "layer { name: 'in' type: 'Input' top: 'map' top: 'rois' input_param { shape { dim: 1 "
            "dim: 2 dim: 4 dim: 4 } shape { dim: 6 dim: 4 } } } layer { name: 'l' type: "
            "'ROIPooling' bottom: 'map' bottom: 'rois' top: 'y' roi_pooling_param { pooled_h: 2 "
            "pooled_w: 2 } }");
      }),
      HasSubstr("it must hold boxes, rows of 5"));
}

}  // namespace
}  // namespace caffe
