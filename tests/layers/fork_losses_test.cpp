// Compares losses of Caffe's forks with sums written from their papers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
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

using Numbers = std::vector<float>;

// A layer on inputs x0, x1, ... with the given shapes ("dim: 2 dim: 3"), in training.
class LossNet {
 public:
  LossNet(const std::vector<std::string>& shapes, const std::string& layer) {
    std::string text = "force_backward: true state { phase: TRAIN } ", bottoms;
    for (size_t i = 0; i < shapes.size(); ++i) {
      const std::string name = "x" + std::to_string(i);
      text += "layer { name: '" + name + "' type: 'Input' top: '" + name +
              "' input_param { shape { " + shapes[i] + " } } } ";
      bottoms += "bottom: '" + name + "' ";
    }
    net_ = NetOf(text + "layer { name: 'l' " + bottoms + " top: 'loss' " + layer + " }");
  }

  LossNet& Set(int input, const Numbers& values) {
    Blob& blob = *net_->blob_by_name("x" + std::to_string(input));
    EXPECT_EQ(blob.count(), static_cast<int64_t>(values.size())) << "x" << input;
    std::copy(values.begin(), values.end(), blob.mutable_cpu_data<float>());
    return *this;
  }
  float Loss() {
    net_->Forward();
    return net_->blob_by_name("loss")->cpu_data<float>()[0];
  }
  // Must be called after Loss().
  Numbers Gradient(int input) {
    net_->Backward();
    const Blob& blob = *net_->blob_by_name("x" + std::to_string(input));
    return {blob.cpu_diff<float>(), blob.cpu_diff<float>() + blob.count()};
  }
  Net& net() { return *net_; }

 private:
  std::unique_ptr<Net> net_;
};

void ExpectNumbersNear(const Numbers& found, const std::vector<double>& want) {
  ASSERT_EQ(found.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(found[i], want[i], 1e-5) << i;
}

TEST(SmoothL1LossTest, WeighsInsideAndOutside) {
  LossNet net(std::vector<std::string>(4, "dim: 2 dim: 2"),
              "type: 'SmoothL1Loss' smooth_l1_loss_param { sigma: 3 }");
  net.Set(0, {1, 0.05f, -2, 4}).Set(1, {0, 0, 0, 1}).Set(2, {1, 1, 0.5f, 0}).Set(3, {1, 2, 3, 4});
  // Differences 1, 0.05, -1 and 0; linear above 1/9.
  const double linear = 1 - 0.5 / 9, square = 9 * 0.05 * 0.05 / 2;
  EXPECT_NEAR(net.Loss(), (linear + 2 * square + 3 * linear) / 2, 1e-5);
  ExpectNumbersNear(net.Gradient(0), {0.5, 2 * 9 * 0.05 / 2, -3 * 0.5 / 2, 0});
  ExpectNumbersNear(net.Gradient(1), {-0.5, -2 * 9 * 0.05 / 2, 3 * 0.5 / 2, 0});
}

TEST(SmoothL1LossTest, GivesTheLossOfEachPosition) {
  const std::vector<std::string> shapes(3, "dim: 2 dim: 2 dim: 1 dim: 2");
  const std::string tops = "top: 'each' loss_weight: 1 loss_weight: 0 ";
  for (const std::string type : {"SmoothL1Loss", "SmoothL1LossOHEM"}) {
    LossNet net(shapes, tops + "type: '" + type +
                            "' loss_param { normalization: PRE_FIXED pre_fixed_normalizer: 8 }");
    net.Set(0, {2, 1, 0, 0.5f, -3, 0, 1, 1}).Set(1, Numbers(8, 0)).Set(2, {1, 1, 1, 1, 1, 1, 0, 1});
    // Position 0 of item 0 has channels 2 and 0, position 1 has 1 and 0.5.
    EXPECT_NEAR(net.Loss(), (1.5 + 0.5 + 0.125 + 2.5 + 0.5) / 8, 1e-6) << type;
    const Blob& each = *net.net().blob_by_name("each");
    EXPECT_EQ(each.shape(), (Shape{2, 1, 1, 2}));
    ExpectNumbersNear({each.cpu_data<float>(), each.cpu_data<float>() + 4}, {1.5, 0.625, 2.5, 0.5});
    EXPECT_NEAR(net.Gradient(0)[3], 0.5 / 8, 1e-6) << type;
  }
}

TEST(SmoothL1LossTest, DividesAsLossParamSaysInRFCNs) {
  const auto loss_of = [](const std::string& type) {
    LossNet net(std::vector<std::string>(2, "dim: 2 dim: 1 dim: 1 dim: 3"), "type: '" + type + "'");
    return net.Set(0, Numbers(6, 2)).Set(1, Numbers(6, 0)).Loss();
  };
  EXPECT_FLOAT_EQ(loss_of("SmoothL1Loss"), 6 * 1.5f / 2);      // divided by items
  EXPECT_FLOAT_EQ(loss_of("SmoothL1LossOHEM"), 6 * 1.5f / 6);  // divided by positions
}

TEST(SoftmaxWithLossTest, GivesTheLossOfEachLabel) {
  for (const std::string type : {"SoftmaxWithLoss", "SoftmaxWithLossOHEM"}) {
    LossNet net({"dim: 3 dim: 2", "dim: 3 dim: 1"},
                "top: 'p' top: 'each' loss_weight: 1 loss_weight: 0 loss_weight: 0 type: '" + type +
                    "' loss_param { ignore_label: -1 normalization: PRE_FIXED "
                    "pre_fixed_normalizer: 4 }");
    net.Set(0, {0, 0, std::log(3.0f), 0, 5, 5}).Set(1, {1, 0, -1});
    EXPECT_NEAR(net.Loss(), (std::log(2.0) + std::log(4 / 3.0)) / 4, 1e-6) << type;
    const Blob& each = *net.net().blob_by_name("each");
    EXPECT_EQ(each.shape(), (Shape{3, 1}));
    ExpectNumbersNear({each.cpu_data<float>(), each.cpu_data<float>() + 3},
                      {std::log(2.0), std::log(4 / 3.0), 0});
    ExpectNumbersNear(net.Gradient(0), {0.125, -0.125, -0.0625, 0.0625, 0, 0});
  }
}

TEST(SoftmaxWithLossTest, RefusesADivisorBelow1) {
  EXPECT_THAT(ErrorText<InvalidArgument>([] {
                LossNet({"dim: 2 dim: 3", "dim: 2"},
                        "type: 'SoftmaxWithLoss' loss_param { normalization: PRE_FIXED "
                        "pre_fixed_normalizer: 0 }");
              }),
              HasSubstr("pre_fixed_normalizer is 0; it must be at least 1"));
}

TEST(FocalLossTest, CountsWhatIsRightLess) {
  for (const std::string type : {"FocalLoss", "SoftmaxWithFocalLoss"}) {
    LossNet net({"dim: 3 dim: 2", "dim: 3"},
                "type: '" + type +
                    "' focal_loss_param { gamma: 1.5 alpha: 0.5 } loss_param { "
                    "ignore_label: 5 } propagate_down: true propagate_down: false");
    net.Set(0, {2, 0, -1, 1, 3, 3}).Set(1, {0, 0, 5});
    double want = 0;
    for (const double margin : {2.0, -2.0}) {  // the label's score minus the other one
      const double p = 1 / (1 + std::exp(-margin));
      want -= 0.5 * std::pow(1 - p, 1.5) * std::log(p) / 2;
    }
    EXPECT_NEAR(net.Loss(), want, 1e-5);
  }
}

TEST(FocalLossTest, LinearShiftsAndScalesTheScore) {
  // The classes are on the last axis.
  LossNet net({"dim: 2 dim: 2 dim: 3", "dim: 2 dim: 2"},
              "type: 'FocalLoss' focal_loss_param { type: LINEAR gamma: 4 alpha: 0.5 beta: -0.5 } "
              "softmax_param { axis: 2 } propagate_down: true propagate_down: false");
  const Numbers scores = {2, 0, -1, 1, 3, 3, 0, 0, 0, 90, -90, 0}, labels = {0, 2, 1, 0};
  net.Set(0, scores).Set(1, labels);
  double want = 0;
  std::vector<double> gradient;
  for (int row = 0; row < 4; ++row) {
    const float* s = &scores[3 * row];
    const int label = static_cast<int>(labels[row]);
    double others = 0;
    for (int c = 0; c < 3; ++c) {
      if (c != label) others += std::exp(static_cast<double>(s[c]));
    }
    const double x = s[label] - std::log(others), z = 4 * x - 0.5;
    want += 0.5 * std::log1p(std::exp(-z)) / 4 / 4;
    for (int c = 0; c < 3; ++c) {
      const double slope_of_x = c == label ? 1 : -std::exp(static_cast<double>(s[c])) / others;
      gradient.push_back(-0.5 / (1 + std::exp(z)) * slope_of_x / 4);
    }
  }
  EXPECT_NEAR(net.Loss(), want, 1e-5);
  ExpectNumbersNear(net.Gradient(0), gradient);
}

// As in SegNet: the weight of the label's class is a factor, the divisor counts items.
TEST(SoftmaxWithLossTest, WeighsItemsByTheirClass) {
  LossNet net({"dim: 1 dim: 3 dim: 1 dim: 4", "dim: 1 dim: 1 dim: 1 dim: 4"},
              "type: 'SoftmaxWithLoss' loss_param { ignore_label: 7 weight_by_label_freqs: true "
              "class_weighting: 0.5 class_weighting: 1.5 class_weighting: 4 } "
              "propagate_down: true propagate_down: false");
  net.Set(0, Numbers(12, 1)).Set(1, {0, 2, 7, 2});
  EXPECT_NEAR(net.Loss(), (0.5 + 4 + 4) * std::log(3.0) / 3, 1e-5);
  const double a = 0.5 / 9, b = 4 / 9.0;  // a third of a weight, over three items
  ExpectNumbersNear(net.Gradient(0), {-2 * a, b, 0, b, a, b, 0, b, a, -2 * b, 0, -2 * b});
}

TEST(SoftmaxWithLossTest, NeedsAWeightForEachClass) {
  const auto error_of = [](const std::string& options) {
    return ErrorText<InvalidArgument>([&] {
      LossNet({"dim: 2 dim: 3", "dim: 2"}, "type: 'SoftmaxWithLoss' loss_param { " + options + "}");
    });
  };
  EXPECT_THAT(error_of("weight_by_label_freqs: true class_weighting: 1"),
              HasSubstr("class_weighting is given 1 times for 3 classes"));
  EXPECT_THAT(error_of("weight_by_label_freqs: true"),
              HasSubstr("class_weighting is given 0 times for 3 classes"));
  EXPECT_THAT(error_of("weight_by_label_freqs: true class_weighting: [1, -1, 1]"),
              HasSubstr("a factor below 0"));
}

TEST(TripletLossTest, PullsAndPushesWithinTheMargin) {
  LossNet net(std::vector<std::string>(3, "dim: 2 dim: 2"),
              "type: 'TripletLoss' triplet_loss_param { margin: 0.5 }");
  // |a - p|^2 and |a - n|^2: 1 and 0.25; 1 and 4, which is far enough.
  net.Set(0, {0, 0, 1, 1}).Set(1, {1, 0, 1, 2}).Set(2, {0, 0.5f, -1, 1});
  EXPECT_NEAR(net.Loss(), (0.5 + 1 - 0.25) / 4, 1e-6);
  ExpectNumbersNear(net.Gradient(0), {-0.5, 0.25, 0, 0});
  ExpectNumbersNear(net.Gradient(1), {0.5, 0, 0, 0});
  ExpectNumbersNear(net.Gradient(2), {0, -0.25, 0, 0});
}

TEST(CenterLossTest, MovesCentersToTheirFeatures) {
  LossNet net({"dim: 3 dim: 2", "dim: 3"},
              "type: 'CenterLoss' loss_weight: 4 center_loss_param { num_output: 3 center_filler { "
              "type: 'constant' value: 1 } } propagate_down: true propagate_down: false");
  net.Set(0, {2, 1, 1, 4, 0, 0}).Set(1, {0, 0, 2});
  EXPECT_NEAR(net.Loss(), (1 + 9 + 2) / 6.0, 1e-6);
  ExpectNumbersNear(net.Gradient(0), {4 / 3.0, 0, 0, 4, -4 / 3.0, -4 / 3.0});
  // For class 0: (1 - 2 + 1 - 1) / (2 + 1); the loss weight has no effect.
  const Blob& centers = *net.net().learnable_params()[0].blob;
  ExpectNumbersNear({centers.cpu_diff<float>(), centers.cpu_diff<float>() + 6},
                    {-1 / 3.0, -1, 0, 0, 0.5, 0.5});
  net.Set(1, {0, 3, 2});
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { net.Loss(); }),
              HasSubstr("label 3 at position 1 of the batch is outside 0..2"));
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(L1LossTest, FlowNetsLeavesOutWhatIsNoNumber) {
  LossNet net({"dim: 2 dim: 2 dim: 1 dim: 2", "dim: 2 dim: 2 dim: 1 dim: 2"},
              "type: 'L1Loss' l1_loss_param { normalize_by_num_entries: true plateau: 0.5 }");
  net.Set(0, {1, 2, 3, 4, 5, 6, 7, 8}).Set(1, {0, kNan, 3.25f, 6, 5, 5, kNan, 7});
  // 6 numbers in 2 channels; differences 1, -0.25 on the plateau, -2, 0, 1 and 1.
  EXPECT_NEAR(net.Loss(), 5 / 3.0, 1e-6);
  const double s = 1 / 3.0;
  ExpectNumbersNear(net.Gradient(0), {s, 0, 0, -s, 0, s, 0, s});
  ExpectNumbersNear(net.Gradient(1), {-s, 0, 0, s, 0, -s, 0, -s});
}

// A net that has diverged must not be treated as unknown flow.
TEST(L1LossTest, FlowNetsKeepsNanOfThePrediction) {
  for (const std::string options : {"plateau: 0.5", "l2_per_location: true"}) {
    LossNet net({"dim: 1 dim: 2 dim: 1 dim: 2", "dim: 1 dim: 2 dim: 1 dim: 2"},
                "type: 'L1Loss' l1_loss_param { " + options + " }");
    net.Set(0, {1, kNan, 3, 4}).Set(1, {0, 0, 0, kNan});
    EXPECT_TRUE(std::isnan(net.Loss())) << options;
    const Numbers gradient = net.Gradient(0);
    EXPECT_TRUE(std::isnan(gradient[1])) << options;
    EXPECT_EQ(gradient[3], 0) << options;
    net.Set(0, {1, 2, 3, kNan});  // an unknown flow cannot be right or wrong
    EXPECT_TRUE(std::isfinite(net.Loss())) << options;
  }
}

TEST(L1LossTest, FlowNetsMeasuresVectors) {
  // One bottom is the difference itself. Two positions of an item, vectors (3, 4) and (NaN, 1).
  LossNet net({"dim: 1 dim: 2 dim: 1 dim: 2"},
              "type: 'L1Loss' l1_loss_param { l2_per_location: true epsilon: 0.01 }");
  net.Set(0, {3, kNan, 4, 1});
  EXPECT_NEAR(net.Loss(), std::sqrt(25.01) + std::sqrt(1.01), 1e-5);
  ExpectNumbersNear(net.Gradient(0),
                    {3 / std::sqrt(25.01), 0, 4 / std::sqrt(25.01), 1 / std::sqrt(1.01)});
  LossNet scaled(
      {"dim: 1 dim: 2 dim: 1 dim: 2"},
      "type: 'L1Loss' l1_loss_param { l2_per_location: true l2_prescale_by_channels: true "
      "epsilon: 0 plateau: 2 }");
  scaled.Set(0, {3, 1, 4, 1});  // the second one's length is below the plateau
  EXPECT_NEAR(scaled.Loss(), std::sqrt(12.5), 1e-5);
}

// The probability of labels, summed over every path of `steps` classes.
double Probability(const std::vector<std::vector<double>>& y, const std::vector<int>& labels,
                   int blank, bool merges) {
  const int steps = static_cast<int>(y.size()), classes = static_cast<int>(y[0].size());
  double sum = 0;
  std::vector<int> path(steps, 0);
  for (;;) {
    std::vector<int> read;
    double p = 1;
    for (int t = 0; t < steps; ++t) {
      p *= y[t][path[t]];
      const bool repeats = merges && t > 0 && path[t] == path[t - 1];
      if (path[t] != blank && !repeats) read.push_back(path[t]);
    }
    if (read == labels) sum += p;
    int t = 0;
    while (t < steps && ++path[t] == classes) path[t++] = 0;
    if (t == steps) return sum;
  }
}

constexpr int kSteps = 5, kClasses = 3;

class CtcTest : public ::testing::Test {
 protected:
  CtcTest() {
    for (int i = 0; i < kSteps * 2 * kClasses; ++i) {
      scores_.push_back(2 * std::sin(static_cast<float>(i * i)));
    }
  }

  // -log p of steps [first, last) of sequence n.
  double Want(int n, int first, int last, const std::vector<int>& labels, int blank,
              bool merges = true) const {
    std::vector<std::vector<double>> y;
    for (int t = first; t < last; ++t) {
      const float* x = &scores_[(t * 2 + n) * kClasses];
      double sum = 0;
      for (int c = 0; c < kClasses; ++c) sum += std::exp(x[c]);
      y.emplace_back();
      for (int c = 0; c < kClasses; ++c) y.back().push_back(std::exp(x[c]) / sum);
    }
    return -std::log(Probability(y, labels, blank, merges));
  }

  Numbers scores_;  // T x 2 x C
};

const std::string kScores = "dim: 5 dim: 2 dim: 3";
const std::string kIndicated = "propagate_down: true propagate_down: false propagate_down: false ";

TEST_F(CtcTest, SumsAllPathsOfIndicatedSequences) {
  for (const std::string options : {"", "blank_index: 1", "ctc_merge_repeated: false",
                                    "output_delay: 1", "preprocess_collapse_repeated: true"}) {
    SCOPED_TRACE(options);
    LossNet net({kScores, "dim: 5 dim: 2", "dim: 5 dim: 2"},
                "type: 'CTCLoss' ctc_loss_param { " + options + " } " + kIndicated);
    // The second sequence ends after four steps.
    net.Set(0, scores_).Set(1, {0, 0, 1, 1, 1, 1, 1, 1, 1, 0});
    net.Set(2, {0, 0, 0, 0, -1, -1, -1, -1, -1, -1});
    const bool merges = options != "ctc_merge_repeated: false";
    const int blank = options == "blank_index: 1" ? 1 : 2, delay = options == "output_delay: 1";
    const std::vector<int> labels = options == "preprocess_collapse_repeated: true"
                                        ? std::vector<int>{0}
                                        : std::vector<int>{0, 0};
    EXPECT_NEAR(
        net.Loss(),
        (Want(0, delay, 5, labels, blank, merges) + Want(1, delay, 4, labels, blank, merges)) / 2,
        1e-5);
    const Numbers gradient = net.Gradient(0);
    for (int c = 0; c < kClasses; ++c) EXPECT_EQ(gradient[(4 * 2 + 1) * kClasses + c], 0) << c;
  }
}

TEST_F(CtcTest, ReadsWarpCtcsLabels) {
  // Blanks are ignored.
  for (const std::string type : {"WarpCTC", "WarpCTCLoss", "CtcLoss"}) {
    LossNet net({kScores, "dim: 2 dim: 4"},
                "type: '" + type +
                    "' ctc_loss_param { alphabet_size: 3 time_step: 5 } "
                    "propagate_down: true propagate_down: false");
    net.Set(0, scores_).Set(1, {1, 2, 1, 0, 2, 0, 0, 0});
    EXPECT_NEAR(net.Loss(), (Want(0, 0, 5, {1, 2, 1}, 0) + Want(1, 0, 5, {2}, 0)) / 2, 1e-5);
  }
  LossNet lengths(
      {kScores, "dim: 2", "dim: 2", "dim: 3 dim: 2"},
      "type: 'WarpCTCLoss' ctc_loss_param { blank_label: 1 } propagate_down: true " + kIndicated);
  lengths.Set(0, scores_).Set(1, {5, 3}).Set(2, {3, 1}).Set(3, {0, 2, 2, 0, 0, 0});
  EXPECT_NEAR(lengths.Loss(), (Want(0, 0, 5, {0, 2, 0}, 1) + Want(1, 0, 3, {2}, 1)) / 2, 1e-5);
}

TEST_F(CtcTest, RefusesLabelsThatAreNoClasses) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const auto& [label, text] :
       std::vector<std::pair<float, std::string>>{{std::nanf(""), "nan"},
                                                  {infinity, "inf"},
                                                  {-infinity, "-inf"},
                                                  {1e30f, "1e+30"},
                                                  {1.5f, "1.5"},
                                                  {3, "3"}}) {
    LossNet net({kScores, "dim: 2 dim: 4"}, "type: 'WarpCTC'");
    net.Set(0, scores_).Set(1, {1, 0, 0, 0, 2, label, 0, 0});
    EXPECT_THAT(ErrorText<InvalidArgument>([&] { net.Loss(); }),
                HasSubstr("label " + text + " of sequence 1 must be a whole number in 0..2"));
  }
}

TEST_F(CtcTest, RefusesLengthsThatItsBlobsDoNotHold) {
  const auto refuses = [&](const Numbers& lengths, const Numbers& labels,
                           const std::string& reason) {
    LossNet net({kScores, "dim: 2", "dim: 2", "dim: 3 dim: 2"},
                "type: 'WarpCTCLoss' " + kIndicated + "propagate_down: false");
    net.Set(0, scores_).Set(1, lengths).Set(2, labels).Set(3, {1, 1, 1, 1, 1, 1});
    EXPECT_THAT(ErrorText<InvalidArgument>([&] { net.Loss(); }), HasSubstr(reason));
  };
  refuses({5, 5}, {1, 4}, "the number of labels 4 of sequence 1 must be a whole number in 0..3");
  refuses({5, 5}, {-1, 1}, "the number of labels -1 of sequence 0 must be a whole number in 0..3");
  refuses({5, 5}, {1, std::nanf("")}, "the number of labels nan of sequence 1");
  refuses({6, 5}, {1, 1}, "the length 6 of sequence 0 must be a whole number in 0..5");
  refuses({5, 1e30f}, {1, 1}, "the length 1e+30 of sequence 1 must be a whole number in 0..5");
}

TEST_F(CtcTest, ImpossibleAlignmentsHaveNoGradient) {
  const float infinity = std::numeric_limits<float>::infinity();
  LossNet net({kScores, "dim: 2 dim: 4"},
              "type: 'WarpCTC' propagate_down: true propagate_down: "
              "false");
  for (const bool has_no_class : {false, true}) {
    // The first sequence never has class 1, or at one time no class at all.
    Numbers scores = scores_;
    for (int t = 0; t < kSteps; ++t) {
      if (!has_no_class) scores[t * 2 * kClasses + 1] = -infinity;
    }
    if (has_no_class) std::fill_n(&scores[2 * 2 * kClasses], kClasses, -infinity);
    net.Set(0, scores).Set(1, {1, 2, 0, 0, 2, 0, 0, 0});
    EXPECT_EQ(net.Loss(), infinity);
    const Numbers gradient = net.Gradient(0);
    double of_second = 0;
    for (int t = 0; t < kSteps; ++t) {
      for (int c = 0; c < kClasses; ++c) {
        EXPECT_EQ(gradient[t * 2 * kClasses + c], 0);
        of_second += std::abs(gradient[(t * 2 + 1) * kClasses + c]);
      }
    }
    EXPECT_GT(of_second, 0.01);
  }
  // A class that the labels do not need may have probability 0.
  Numbers scores = scores_;
  for (int t = 0; t < kSteps; ++t) scores[t * 2 * kClasses + 1] = -infinity;
  net.Set(0, scores).Set(1, {2, 0, 0, 0, 2, 0, 0, 0});
  EXPECT_TRUE(std::isfinite(net.Loss()));
  for (const float slope : net.Gradient(0)) EXPECT_TRUE(std::isfinite(slope));
  // NaN stays visible.
  scores[0] = std::nanf("");
  net.Set(0, scores);
  EXPECT_TRUE(std::isnan(net.Loss()));
}

TEST_F(CtcTest, NoSequencesHaveNoLoss) {
  LossNet net({"dim: 5 dim: 0 dim: 3", "dim: 0 dim: 4"},
              "type: 'WarpCTC' propagate_down: true propagate_down: false");
  EXPECT_EQ(net.Loss(), 0);
}

TEST(ForkLossesTest, SayWhatIsWrong) {
  const auto refuses = [](const std::vector<std::string>& shapes, const std::string& layer,
                          const std::string& reason) {
    EXPECT_THAT(ErrorText<Error>([&] { LossNet(shapes, layer); }), HasSubstr(reason));
  };
  const std::vector<std::string> two(2, "dim: 2 dim: 3");
  refuses(two, "type: 'SmoothL1Loss' smooth_l1_loss_param { sigma: 0 }", "sigma is 0");
  refuses({"dim: 2 dim: 3", "dim: 2"},
          "type: 'FocalLoss' focal_loss_param { type: LINEAR gamma: 0 }",
          "gamma is 0; type: LINEAR divides by it");
  refuses({"dim: 2 dim: 3", "dim: 2"}, "type: 'FocalLoss' focal_loss_param { gamma: -1 }",
          "gamma is -1");
  refuses({"dim: 2 dim: 3", "dim: 2 dim: 3", "dim: 2 dim: 4"}, "type: 'TripletLoss'",
          "anchors, likes and others must have the same");
  refuses({"dim: 2 dim: 3", "dim: 2"}, "type: 'CenterLoss'", "num_output is 0");
  refuses({"dim: 2 dim: 3", "dim: 3"}, "type: 'CenterLoss' center_loss_param { num_output: 4 }",
          "give one label per row of features");
  refuses(two, "type: 'L1Loss' l1_loss_param { epsilon: -1 }", "epsilon and plateau are -1");
  refuses(two, "type: 'L1Loss' l1_loss_param { l2_prescale_by_channels: true }",
          "l2_prescale_by_channels needs l2_per_location");
  refuses({kScores, "dim: 2 dim: 4"}, "type: 'CTCLoss' ctc_loss_param { blank_index: 3 }",
          "the blank is class 3; there are 3 classes");
  refuses({kScores, "dim: 2 dim: 4"}, "type: 'WarpCTC' ctc_loss_param { alphabet_size: 11 }",
          "alphabet_size is 11, but bottom 0 has 3 classes");
  refuses({kScores, "dim: 3 dim: 4"}, "type: 'WarpCTC'", "they are N x L for N = 2 sequences");
  LossNet crowded({kScores, "dim: 2 dim: 4"}, "type: 'WarpCTC'");
  crowded.Set(1, {1, 1, 1, 1, 0, 0, 0, 0});
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { crowded.Loss(); }),
              HasSubstr("sequence 0 has 5 time steps after output_delay; its 4 "
                        "labels need at least 7"));
}

}  // namespace
}  // namespace caffe
