#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "caffe/blob.hpp"
#include "caffe/error.hpp"
#include "caffe/net.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using testing::NetOf;
using ::testing::Pointwise;

constexpr int kMapHeight = 9, kMapWidth = 12;

std::unique_ptr<Net> MakeNmsNet(const std::string& options) {
  return NetOf(
      "layer { name: 'in' type: 'Input' top: 'maps' input_param { shape { dim: 1 dim: 3 dim: 9 "
      "dim: "
      "12 } } } layer { name: 'l' type: 'Nms' bottom: 'maps' top: 'peaks' nms_param { " +
      options + " } }");
}

TEST(NmsTest, FindsPeaksBetweenPixels) {
  const auto net = MakeNmsNet("threshold: 0.3 max_peaks: 2 num_parts: 2");
  float* maps = net->blob_by_name("maps")->mutable_cpu_data<float>();
  const auto at = [&](int part, int y, int x) -> float& {
    return maps[(part * kMapHeight + y) * kMapWidth + x];
  };
  // A peak that leans to the right and down; one at the edge and a low one do not count.
  at(0, 4, 5) = 0.8f, at(0, 4, 6) = 0.6f, at(0, 5, 5) = 0.2f, at(0, 3, 3) = -9;
  at(0, 0, 9) = 1, at(0, 7, 10) = 0.3f;
  // Two equal neighbours are not a peak; the first two of three others count.
  at(1, 1, 1) = at(1, 1, 2) = 0.9f;
  at(1, 1, 6) = 0.5f, at(1, 1, 10) = 0.7f, at(1, 7, 7) = 0.9f;
  net->Forward();
  const Blob& peaks = *net->blob_by_name("peaks");
  EXPECT_EQ(peaks.shape(), (Shape{1, 2, 3, 3}));
  const float sum = 0.8f + 0.6f + 0.2f;
  EXPECT_THAT(
      std::vector<float>(peaks.cpu_data<float>(), peaks.cpu_data<float>() + 18),
      Pointwise(FloatNear(1e-5f),
                std::vector<float>{1, 0, 0, (5 * 0.8f + 6 * 0.6f + 5 * 0.2f) / sum,
                                   (4 * 0.8f + 4 * 0.6f + 5 * 0.2f) / sum, 0.8f, 0, 0, 0,  //
                                   2, 0, 0, 6, 1, 0.5f, 10, 1, 0.7f}));
}

TEST(NmsTest, ANaNIsNoPeakAndHasNone) {
  const auto net = MakeNmsNet("threshold: 0.3 max_peaks: 2 num_parts: 2");
  float* maps = net->blob_by_name("maps")->mutable_cpu_data<float>();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  maps[4 * kMapWidth + 5] = nan;  // without other peaks
  float* second = maps + kMapHeight * kMapWidth;
  second[4 * kMapWidth + 5] = 0.8f, second[4 * kMapWidth + 6] = nan;
  net->Forward();
  const float* peaks = net->blob_by_name("peaks")->cpu_data<float>();
  EXPECT_EQ(peaks[0], 0);
  EXPECT_EQ(peaks[9], 0);
}

TEST(NmsTest, SaysWhatIsWrong) {
  EXPECT_THAT(ErrorText<InvalidArgument>([] { MakeNmsNet(""); }),
              HasSubstr("at least num_parts 15 channels"));
  EXPECT_THAT(ErrorText<InvalidArgument>([] { MakeNmsNet("max_peaks: 0"); }),
              HasSubstr("max_peaks and num_parts are 0 and 15"));
}

}  // namespace
}  // namespace caffe
