// Compares proposals of a small map with boxes computed by hand and with a loop that follows Faster
// R-CNN.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "caffe/blob.hpp"
#include "caffe/error.hpp"
#include "caffe/net.hpp"
#include "tests/support/blob_values.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

using ::testing::ElementsAre;
using testing::ErrorText;
using testing::Get;
using ::testing::HasSubstr;
using testing::NetOf;
using testing::Set;

std::unique_ptr<Net> Proposer(const std::string& shapes, const std::string& options) {
  return NetOf(
      "layer { name: 'in' type: 'Input' top: 'scores' top: 'offsets' top: 'im_info' input_param "
      "{ " +
      shapes +
      " } } layer { name: 'p' type: 'Proposal' bottom: 'scores' bottom: 'offsets' bottom: "
      "'im_info' top: 'rois' top: 'best' proposal_param { " +
      options + " } }");
}

TEST(ProposalTest, AnchorsAreThoseOfFasterRCNN) {
  // One position, nine anchors, no offsets, an image that clips nothing on the right: the parts
  // inside the image of the published anchors (-84,-40,99,55), (-176,-88,191,103), ...
  const auto net = Proposer(
      "shape { dim: 1 dim: 18 dim: 1 dim: 1 } shape { dim: 1 dim: 36 dim: 1 dim: 1 } shape { dim: "
      "1 "
      "dim: 3 }",
      "nms_thresh: 1");
  std::vector<float> scores(18, 0);
  for (int i = 0; i < 9; ++i) scores[9 + i] = 0.9f - 0.1f * static_cast<float>(i);
  Set(*net, "scores", scores);
  Set(*net, "im_info", {600, 600, 1});
  net->Forward();
  // Offsets of 0 keep the centre and the counted size, so the last pixel is one further.
  EXPECT_THAT(Get(*net, "rois"),
              ElementsAre(0, 0, 0, 100, 56, 0, 0, 0, 192, 104, 0, 0, 0, 376, 200,  //
                          0, 0, 0, 72, 72, 0, 0, 0, 136, 136, 0, 0, 0, 264, 264,   //
                          0, 0, 0, 52, 96, 0, 0, 0, 96, 184, 0, 0, 0, 184, 360));
  EXPECT_NEAR(Get(*net, "best")[8], 0.1f, 1e-6);
}

TEST(ProposalTest, DecodesClipsSortsAndSuppresses) {
  // One square anchor of 16 pixels, three positions in a row, two images.
  const std::string shapes =
      "shape { dim: 2 dim: 2 dim: 1 dim: 3 } shape { dim: 2 dim: 4 dim: 1 dim: 3 } shape { dim: 2 "
      "dim: 3 }";
  const auto net = Proposer(shapes, "ratio: 1 scale: 1 min_size: 4 nms_thresh: 0.3");
  Set(*net, "scores", {9, 9, 9, 0.2f, 0.8f, 0.6f, 9, 9, 9, 0.5f, 0.4f, 0.3f});
  const float log2 = std::log(2.0f), tiny = std::log(1.0f / 16);
  Set(*net, "offsets",
      {// dx, dy, dw, dh of the three positions
       0, 0.25f, -0.75f, 0, 0, 0, 0, log2, log2, 0, 0, 0,
       // the second image: the first box is smaller than min_size
       0, 0, 0, 0, 0, 0, tiny, 0, 0, 0, 0, 0});
  Set(*net, "im_info", {14, 100, 1, 100, 40, 1});
  net->Forward();
  // First image: box 1 is 32 wide around 28; box 2, moved to the same place, is suppressed; box 0
  // stays. Second image: boxes 1 and 2; the last one is clipped at 39.
  EXPECT_THAT(Get(*net, "rois"), ElementsAre(0, 12, 0, 44, 13,  //
                                             0, 0, 0, 16, 13,   //
                                             1, 16, 0, 32, 16,  //
                                             1, 32, 0, 39, 16));
  EXPECT_THAT(Get(*net, "best"), ElementsAre(0.8f, 0.2f, 0.4f, 0.3f));
  EXPECT_EQ(net->blob_by_name("rois")->shape(), (Shape{4, 5}));

  const auto best = Proposer(shapes, "ratio: 1 scale: 1 min_size: 4 post_nms_topn: 1");
  for (const char* name : {"scores", "offsets", "im_info"}) Set(*best, name, Get(*net, name));
  best->Forward();
  EXPECT_THAT(Get(*best, "best"), ElementsAre(0.8f, 0.4f));

  const auto none = Proposer(shapes, "ratio: 1 scale: 1 min_size: 200");
  for (const char* name : {"scores", "offsets", "im_info"}) Set(*none, name, Get(*net, name));
  none->Forward();
  EXPECT_THAT(Get(*none, "rois"), ElementsAre(0, 0, 0, 0, 0));
  EXPECT_THAT(Get(*none, "best"), ElementsAre(0));
}

TEST(ProposalTest, LeavesOutWhatIsNotFinite) {
  const auto net = Proposer(
      "shape { dim: 1 dim: 2 dim: 1 dim: 5 } shape { dim: 1 dim: 4 dim: 1 dim: 5 } shape { dim: 1 "
      "dim: 3 }",
      "ratio: 1 scale: 1 min_size: 4 nms_thresh: 1");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  // The score of position 0 is NaN, and so are dx of position 1 and dw of position 2; position 3 is
  // e^1000 wide.
  Set(*net, "scores", {9, 9, 9, 9, 9, nan, 0.8f, 0.7f, 0.6f, 0.5f});
  Set(*net, "offsets", {0, nan, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, nan, 1000, 0, 0, 0, 0, 0, 0});
  Set(*net, "im_info", {100, 100, 1});
  net->Forward();
  EXPECT_THAT(Get(*net, "rois"), ElementsAre(0, 64, 0, 80, 16));
  EXPECT_THAT(Get(*net, "best"), ElementsAre(0.5f));
}

TEST(ProposalTest, SaysWhatIsWrong) {
  const auto refuses = [](const std::string& shapes, const std::string& options,
                          const std::string& reason) {
    EXPECT_THAT(ErrorText<InvalidArgument>([&] { Proposer(shapes, options); }), HasSubstr(reason));
  };
  const std::string shapes =
      "shape { dim: 1 dim: 2 dim: 4 dim: 4 } shape { dim: 1 dim: 4 dim: 4 dim: 4 } shape { dim: 1 "
      "dim: 3 }";
  refuses(shapes, "",
          "bottoms 0 and 1 have 2 and 4 channels; 3 ratios and 3 scales need 18 and 36");
  refuses(shapes, "ratio: 1 scale: 1 post_nms_topn: 0", "pre_nms_topn and post_nms_topn are 6000");
  refuses(shapes, "ratio: -1 scale: 1", "a ratio or scale is -1");
  refuses(shapes, "ratio: 1 scale: 1 feat_stride: 0", "feat_stride and base_size are 0 and 16");
}

}  // namespace
}  // namespace caffe
