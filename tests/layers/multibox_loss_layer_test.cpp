#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "caffe/error.hpp"
#include "caffe/net.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

struct Learned {
  float loss = 0;
  std::vector<float> gradient;  // of the locations
};

// The elements that are NaN; -1 for none.
struct Bad {
  int location = -1, score = -1;
};

// One image with one object, matched to prior 0; codes and scores are 0 except for a NaN.
Learned LearnLocations(const std::string& options, const Bad& bad = {}) {
  const auto net = testing::NetOf(StrCat(R"(
      force_backward: true
      layer { name: 'loc' type: 'Input' top: 'loc' input_param { shape { dim: 1 dim: 16 } } }
      layer { name: 'conf' type: 'Input' top: 'conf' input_param { shape { dim: 1 dim: 8 } } }
      layer { name: 'map' type: 'DummyData' top: 'map' top: 'image' dummy_data_param {
              shape { dim: 1 dim: 1 dim: 2 dim: 2 } shape { dim: 1 dim: 3 dim: 40 dim: 40 } } }
      layer { name: 'p' type: 'PriorBox' bottom: 'map' bottom: 'image' top: 'p'
              prior_box_param { min_size: 18 variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2 } }
      layer { name: 'objects' type: 'Input' top: 'objects'
              input_param { shape { dim: 1 dim: 1 dim: 1 dim: 8 } } }
      layer { name: 'l' type: 'MultiBoxLoss' bottom: 'loc' bottom: 'conf' bottom: 'p' bottom: 'objects'
              top: 'loss' multibox_loss_param { num_classes: 2 code_type: CENTER_SIZE )",
                                         options, " } }"));
  const float object[] = {0, 1, 0, 0.05F, 0.1F, 0.5F, 0.45F, 0};
  std::ranges::copy(object, net->blob_by_name("objects")->mutable_cpu_data());
  float* const scores = net->blob_by_name("conf")->mutable_cpu_data();
  float* const locations = net->blob_by_name("loc")->mutable_cpu_data();
  std::fill_n(scores, 8, 0.0F);
  std::fill_n(locations, 16, 0.0F);
  if (bad.score >= 0) scores[bad.score] = std::nanf("");
  if (bad.location >= 0) locations[bad.location] = std::nanf("");
  Learned learned;
  learned.loss = net->ForwardBackward();
  const float* gradient = net->blob_by_name("loc")->cpu_diff();
  learned.gradient.assign(gradient, gradient + 16);
  return learned;
}

// SSD divides the difference of codes by the variance but leaves this division out of the gradient.
// For codes of 0 the loss and that gradient are the same as without the option.
TEST(MultiBoxLossTest, LeavesTheVarianceOutOfTheGradientAsSsdDoes) {
  for (const std::string type : {"SMOOTH_L1", "L2"}) {
    const Learned plain = LearnLocations("loc_loss_type: " + type);
    const Learned encoded =
        LearnLocations("encode_variance_in_target: true loc_loss_type: " + type);
    EXPECT_FLOAT_EQ(encoded.loss, plain.loss) << type;
    EXPECT_NE(std::ranges::count(plain.gradient, 0.0F), 16) << type;
    for (size_t i = 0; i < plain.gradient.size(); ++i)
      EXPECT_NEAR(encoded.gradient[i], plain.gradient[i], 1e-6) << type << " " << i;
  }
}

// One of the three boxes without an object is kept: any other choice would hide the last one's NaN.
TEST(MultiBoxLossTest, MinesANanFirst) {
  for (const std::string mining :
       {"mining_type: MAX_NEGATIVE neg_pos_ratio: 1", "mining_type: HARD_EXAMPLE sample_size: 1"}) {
    EXPECT_TRUE(std::isfinite(LearnLocations(mining).loss)) << mining;
    EXPECT_TRUE(std::isnan(LearnLocations(mining, {.score = 7}).loss)) << mining;
  }
}

// A box at NaN has no position, so it does not cross the image's edge, and cannot move.
TEST(MultiBoxLossTest, KeepsANanLocation) {
  const Learned learned = LearnLocations("bp_inside: true", {.location = 1});
  EXPECT_TRUE(std::isnan(learned.loss));
  EXPECT_TRUE(std::isnan(learned.gradient[1]));
}

// Two prior boxes of three classes with locations of their own; an object of class 1 on prior 1.
class OwnLocations {
 public:
  explicit OwnLocations(int items_of_scores = 1)
      : net_(testing::NetOf(StrCat(R"(
      force_backward: true
      layer { name: 'loc' type: 'Input' top: 'loc' input_param { shape { dim: 1 dim: 24 } } }
      layer { name: 'conf' type: 'Input' top: 'conf' input_param { shape { dim: )",
                                   items_of_scores, R"( dim: 6 } } }
      layer { name: 'p' type: 'Input' top: 'p' input_param { shape { dim: 1 dim: 2 dim: 8 } } }
      layer { name: 'objects' type: 'Input' top: 'objects'
              input_param { shape { dim: 1 dim: 1 dim: 1 dim: 8 } } }
      layer { name: 'l' type: 'MultiBoxLoss' bottom: 'loc' bottom: 'conf' bottom: 'p'
              bottom: 'objects' top: 'loss' propagate_down: true propagate_down: true
              propagate_down: false propagate_down: false multibox_loss_param { num_classes: 3
              share_location: false mining_type: NONE bp_inside: true code_type: CORNER } })"))) {
    const float priors[] = {0.1F, 0.1F, 0.3F, 0.3F, 0.5F, 0.5F, 0.9F, 0.9F, 1, 1, 1, 1, 1, 1, 1, 1};
    std::ranges::copy(priors, data("p"));
    const float object[] = {0, 1, 0, 0.55F, 0.5F, 0.9F, 0.9F, 0};
    std::ranges::copy(object, data("objects"));
    std::fill_n(data("loc"), 24, 0.0F);
    std::fill_n(data("conf"), 6 * items_of_scores, 0.0F);
  }

  float* data(const std::string& blob) { return net_->blob_by_name(blob)->mutable_cpu_data(); }
  // True if a location is learned.
  bool Learns() {
    net_->ForwardBackward();
    const float* const gradient = net_->blob_by_name("loc")->cpu_diff();
    return std::count(gradient, gradient + 24, 0.0F) < 24;
  }

 private:
  std::unique_ptr<Net> net_;
};

TEST(MultiBoxLossTest, DropsLocationsThatLeaveTheImageByTheClassThatLearns) {
  EXPECT_TRUE(OwnLocations().Learns());
  // (prior, class): the second one learns.
  for (const auto& [prior, label, learns] :
       {std::tuple{0, 1, true}, {1, 1, false}, {1, 0, true}, {1, 2, true}}) {
    OwnLocations of;
    of.data("loc")[(prior * 3 + label) * 4 + 2] = 5;
    EXPECT_EQ(of.Learns(), learns) << prior << label;
  }
}

TEST(MultiBoxLossTest, LeavesOutObjectsOfNoItem) {
  for (const float item : {std::nanf(""), 3e9F, INFINITY, 1.0F, -1.0F}) {
    OwnLocations of;
    of.data("objects")[0] = item;
    EXPECT_FALSE(of.Learns()) << item;
  }
}

TEST(MultiBoxLossTest, RefusesScoresOfOtherItems) {
  EXPECT_THAT(testing::ErrorText<InvalidArgument>([] { OwnLocations of(8); }),
              ::testing::HasSubstr("they must have as many items"));
}

}  // namespace
}  // namespace caffe
