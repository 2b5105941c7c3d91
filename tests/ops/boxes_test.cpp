#include "caffe/ops/boxes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "caffe/ops/detections.hpp"

namespace caffe::ops {
namespace {

TEST(BoxesTest, OverlapAndCoverage) {
  const Box a{0, 0, 0.4, 0.4}, b{0.2, 0.2, 0.6, 0.6};
  EXPECT_NEAR(Overlap(a, b), 0.04 / 0.28, 1e-12);
  EXPECT_NEAR(Coverage(a, b), 0.25, 1e-12);
  EXPECT_EQ(Overlap(a, Box{0.4, 0, 0.8, 0.4}), 0);  // they only touch
  EXPECT_EQ((Box{0.4, 0.4, 0.2, 0.6}).area(), 0);
  EXPECT_EQ((Box{-1, 0.5, 2, 0.75}).Clipped(), (Box{0, 0.5, 1, 0.75}));
}

TEST(BoxesTest, CodesAreUndone) {
  const Box box{0.1, 0.2, 0.5, 0.7}, prior{0.15, 0.1, 0.45, 0.8};
  const BoxCodes variances{0.1, 0.1, 0.2, 0.2};
  for (const BoxCode code : {BoxCode::kCorner, BoxCode::kCenterSize, BoxCode::kCornerSize}) {
    for (const bool scales : {true, false}) {
      const Box again =
          Decode(Encode(box, prior, variances, code, scales), prior, variances, code, scales);
      EXPECT_NEAR(again.xmin, box.xmin, 1e-12);
      EXPECT_NEAR(again.ymax, box.ymax, 1e-12);
    }
  }
  // Centre (0.3, 0.45) against (0.3, 0.45), sides 0.4 and 0.5 against 0.3 and 0.7.
  const BoxCodes codes = Encode(box, prior, variances, BoxCode::kCenterSize, true);
  EXPECT_NEAR(codes[0], 0, 1e-12);
  EXPECT_NEAR(codes[2], std::log(4.0 / 3) / 0.2, 1e-12);
  EXPECT_NEAR(codes[3], std::log(5.0 / 7) / 0.2, 1e-12);
}

TEST(BoxesTest, SuppressionKeepsTheBest) {
  const std::vector<Box> boxes = {{0, 0, 0.4, 0.4}, {0, 0, 0.4, 0.36}, {0.5, 0.5, 1, 1}};
  std::vector<ScoredBox> candidates = {{0.3, 2}, {0.9, 1}, {0.8, 0}};
  KeepBest(&candidates, 3);
  std::vector<ScoredBox> kept = Suppress(candidates, boxes, 0.5, 1);
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].index, 1);
  EXPECT_EQ(kept[1].index, 2);
  EXPECT_EQ(Suppress(candidates, boxes, 0.5, 1, 0).size(), 0u);
  EXPECT_EQ(Suppress(candidates, boxes, 0.5, 1, 2).size(), 2u);
  kept = Suppress(candidates, boxes, 0.5, 1, 1);
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].index, 1);
  EXPECT_EQ(Suppress(candidates, boxes, 0.95, 1).size(), 3u);
  // After the first kept box the threshold is 0.95 * 0.9, below their overlap of 0.9.
  EXPECT_EQ(Suppress(candidates, boxes, 0.95, 0.9).size(), 2u);
  KeepBest(&candidates, 1);
  EXPECT_EQ(candidates.size(), 1u);
}

TEST(BoxesTest, TheBestComeInOrderHoweverManyAreKept) {
  std::vector<ScoredBox> all;
  for (int64_t i = 0; i < 500; ++i)
    all.push_back({i % 100 == 7 ? NAN : static_cast<double>(i * 37 % 83), i});
  std::vector<ScoredBox> sorted = all;
  KeepBest(&sorted, -1);
  ASSERT_EQ(sorted.size(), 500U);
  EXPECT_TRUE(std::isnan(sorted[495].score));
  EXPECT_EQ(sorted[495].index, 7);
  for (size_t i = 1; i < 495; ++i) {
    EXPECT_GE(sorted[i - 1].score, sorted[i].score);
    if (sorted[i - 1].score == sorted[i].score) {
      EXPECT_LT(sorted[i - 1].index, sorted[i].index);
    }
  }
  for (const int top_k : {0, 1, 6, 7, 300, 499, 500, 900}) {
    std::vector<ScoredBox> best = all;
    KeepBest(&best, top_k);
    ASSERT_EQ(best.size(), static_cast<size_t>(std::min(top_k, 500)));
    for (size_t i = 0; i < best.size(); ++i) EXPECT_EQ(best[i].index, sorted[i].index) << top_k;
  }
}

// Boxes as detectors find them, some of them inverted, without area or NaN.
std::vector<Box> RandomBoxes(std::mt19937& random, size_t count) {
  std::uniform_real_distribution<double> place(-0.2, 1), size(-0.02, 0.4);
  std::vector<Box> boxes(count);
  for (Box& box : boxes) {
    box.xmin = place(random);
    box.ymin = place(random);
    box.xmax = box.xmin + size(random);
    box.ymax = box.ymin + size(random);
  }
  for (size_t i = 0; i < count; i += 41) boxes[i].ymax = boxes[i].ymin;
  boxes[count / 3].xmax = NAN;
  return boxes;
}

TEST(BoxesTest, SuppressionComparesEachBoxWithTheKeptOnes) {
  std::mt19937 random(1);
  const std::vector<Box> boxes = RandomBoxes(random, 300);
  std::vector<ScoredBox> candidates;
  for (int64_t i = 0; i < 300; ++i) candidates.push_back({1 - static_cast<double>(i) / 300, i});
  for (const double threshold : {0.0, 0.1, 0.45, 0.9, 1.0}) {
    std::vector<int64_t> expected, kept;
    for (const ScoredBox& one : candidates) {
      if (std::ranges::all_of(expected, [&](int64_t better) {
            return Overlap(boxes[one.index], boxes[better]) <= threshold;
          })) {
        expected.push_back(one.index);
      }
    }
    for (const ScoredBox& one : Suppress(candidates, boxes, threshold, 1))
      kept.push_back(one.index);
    EXPECT_EQ(kept, expected) << threshold;
  }
}

// The candidates of a class are thinned out while they are found.
TEST(BoxesTest, DetectorFindsTheBestOfEachClass) {
  constexpr int64_t kPriors = 700, kClasses = 4;
  std::mt19937 random(2);
  std::uniform_int_distribution<int> rank(0, 60);
  std::vector<float> loc(kPriors * 4), conf(kPriors * kClasses), priors(kPriors * 8, 0.1F);
  const std::vector<Box> boxes = RandomBoxes(random, kPriors);
  for (int64_t i = 0; i < kPriors; ++i) {
    const Box& box = boxes[i];
    const std::array edges = {box.xmin, box.ymin, box.xmax, box.ymax};
    for (int64_t k = 0; k < 4; ++k) priors[4 * i + k] = static_cast<float>(edges[k]);
  }
  for (float& score : conf) score = static_cast<float>(rank(random)) / 64;
  conf[5] = conf[77] = NAN;
  const auto view = [](std::vector<float>& numbers, Shape shape) {
    return TensorView{{.shape = std::move(shape)}, numbers.data()};
  };
  const TensorView loc_view = view(loc, {1, kPriors * 4});
  const TensorView conf_view = view(conf, {1, kPriors * kClasses});
  const TensorView priors_view = view(priors, {1, 2, kPriors * 4});
  for (const int top_k : {-1, 0, 1, 2, 30, 349, 350, 700, 1000}) {
    const DetectionOutput op{.classes = kClasses, .least_score = 0.1, .top_k = top_k};
    const Detector detector(op, 0, loc_view, conf_view, priors_view);
    std::vector<std::vector<Detection>> found(kClasses);
    detector.Find(0, 0, kClasses, found.data());
    EXPECT_TRUE(found[0].empty());  // background
    for (int label = 1; label < kClasses; ++label) {
      std::vector<ScoredBox> candidates;
      for (int64_t i = 0; i < kPriors; ++i) {
        const double score = conf[i * kClasses + label];
        if (score > op.least_score) candidates.push_back({score, i});
      }
      KeepBest(&candidates, top_k);
      std::vector<Box> decoded;
      for (int64_t i = 0; i < kPriors; ++i) {
        const float* edges = &priors[4 * i];
        decoded.push_back({edges[0], edges[1], edges[2], edges[3]});
      }
      const std::vector<ScoredBox> expected = Suppress(candidates, decoded, op.overlap, op.eta);
      ASSERT_EQ(found[label].size(), expected.size()) << top_k;
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(found[label][i].score, expected[i].score);
        EXPECT_EQ(found[label][i].box.ymin, decoded[expected[i].index].ymin);
      }
    }
  }
}

}  // namespace
}  // namespace caffe::ops
