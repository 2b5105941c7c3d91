#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

std::unique_ptr<Net> MakeNet(const std::string& options, int boxes = 5) {
  return NetOf(
      "layer { name: 'in' type: 'Input' top: 'rois' top: 'loss' top: 'labels' top: 'weights' "
      "input_param { shape { dim: 5 dim: 5 } shape { dim: " +
      std::to_string(boxes) +
      " dim: 1 } shape { dim: 5 dim: 1 } shape { dim: 5 dim: 2 } } } layer { name: 'l' type: "
      "'BoxAnnotatorOHEM' bottom: 'rois' bottom: 'loss' bottom: 'labels' bottom: 'weights' top: "
      "'hard' top: 'hard_weights' " +
      options + " }");
}

TEST(BoxAnnotatorOHEMTest, KeepsTheHardestBoxesOfEachImage) {
  const auto net = MakeNet("box_annotator_ohem_param { roi_per_img: 2 ignore_label: -7 }");
  std::vector<float> rois(25, 0);
  rois[15] = rois[20] = 1;  // boxes 3 and 4 belong to the second image
  Set(*net, "rois", rois);
  Set(*net, "loss", {0.5f, 2, 0.7f, 0.1f, 0.2f});
  Set(*net, "labels", {1, 2, 3, 4, 5});
  Set(*net, "weights", {1, 1, 2, 2, 3, 3, 4, 4, 5, 5});
  net->Forward();
  EXPECT_THAT(Get(*net, "hard"), ElementsAre(-7, 2, 3, 4, 5));
  EXPECT_THAT(Get(*net, "hard_weights"), ElementsAre(0, 0, 2, 2, 3, 3, 4, 4, 5, 5));
}

TEST(BoxAnnotatorOHEMTest, SaysWhatIsWrong) {
  EXPECT_THAT(ErrorText<InvalidArgument>([] { MakeNet(""); }), HasSubstr("roi_per_img is 0"));
  EXPECT_THAT(
      ErrorText<InvalidArgument>([] { MakeNet("box_annotator_ohem_param { roi_per_img: 2 }", 4); }),
      HasSubstr("a loss and a label for each of 5 boxes"));
}

}  // namespace
}  // namespace caffe
