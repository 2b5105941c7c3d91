// Layers that compute on the host share items of a batch among threads. Their results must have the
// same bits with any number of threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "caffe/blob.hpp"
#include "caffe/core/for_each_item.hpp"
#include "caffe/core/threads_for_now.hpp"
#include "caffe/error.hpp"
#include "caffe/net.hpp"
#include "caffe/ops/boxes.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using ::testing::HasSubstr;
using testing::NetOf;

constexpr int kBoxClasses = 4, kPriors = 192;

// In double, so that the order of sums shows in the last bits.
const std::string kInDouble =
    "force_backward: true default_forward_type: DOUBLE default_backward_type: DOUBLE ";

void FillRandomly(Net& net, const std::string& blob, double least, double most) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> distribution(least, most);
  Blob& x = *net.blob_by_name(blob);
  for (int64_t i = 0; i < x.count(); ++i) x.mutable_cpu_data<double>()[i] = distribution(random);
}

void SetDoubles(Net& net, const std::string& blob, const std::vector<double>& values) {
  ASSERT_EQ(net.blob_by_name(blob)->count(), static_cast<int64_t>(values.size()));
  std::ranges::copy(values, net.blob_by_name(blob)->mutable_cpu_data<double>());
}

std::string InputOf(const std::string& name, const std::string& dims) {
  std::string shape;
  std::istringstream words(dims);
  for (std::string dim; words >> dim;) shape += " dim: " + dim;
  return "layer { name: '" + name + "' type: 'Input' top: '" + name + "' input_param { shape {" +
         shape + " } } } ";
}

// The top and the gradients of the blobs of `learned`.
std::vector<double> ResultsOf(Net& net, const std::string& top,
                              const std::vector<std::string>& learned, int threads) {
  const ThreadsForNow for_now(threads);
  net.Forward();
  if (!learned.empty()) net.Backward();
  const Blob& y = *net.blob_by_name(top);
  std::vector<double> results(y.cpu_data<double>(), y.cpu_data<double>() + y.count());
  for (const std::string& blob : learned) {
    const Blob& x = *net.blob_by_name(blob);
    results.insert(results.end(), x.cpu_diff<double>(), x.cpu_diff<double>() + x.count());
  }
  return results;
}

// One thread is compared with more, several times, because some faults show only now and then.
void ExpectSameForThreads(Net& net, const std::string& top,
                          const std::vector<std::string>& learned = {}) {
  const std::vector<double> expected = ResultsOf(net, top, learned, 1);
  for (const int threads : {2, 3, 8, 2, 3, 8, 2, 3, 8, 2, 3, 8, 2, 3, 8}) {
    const std::vector<double> found = ResultsOf(net, top, learned, threads);
    ASSERT_EQ(found.size(), expected.size());
    EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(double)), 0)
        << threads << " threads";
  }
}

std::unique_ptr<Net> MultiBoxNet(const std::string& options) {
  auto net = NetOf(StrCat(
      kInDouble, InputOf("loc", "5 768"), InputOf("conf", "5 768"), InputOf("objects", "1 1 9 8"),
      R"(layer { name: 'map' type: 'DummyData' top: 'map' top: 'image' dummy_data_param {
              shape { dim: 1 dim: 1 dim: 8 dim: 8 } shape { dim: 1 dim: 3 dim: 80 dim: 80 } } }
         layer { name: 'p' type: 'PriorBox' bottom: 'map' bottom: 'image' top: 'p'
                 propagate_down: false propagate_down: false prior_box_param {
                 min_size: 15 aspect_ratio: 2 flip: true variance: 0.1 } }
         layer { name: 'l' type: 'MultiBoxLoss' bottom: 'loc' bottom: 'conf' bottom: 'p'
                 bottom: 'objects' top: 'loss' propagate_down: true propagate_down: true
                 propagate_down: false propagate_down: false multibox_loss_param {
                 num_classes: 4 code_type: CENTER_SIZE )",
      options, " } }"));
  FillRandomly(*net, "loc", -1, 1);
  FillRandomly(*net, "conf", -3, 3);
  // Image 2 has no object.
  SetDoubles(*net, "objects", {0, 1,  0, .1,  .1, .3, .35, 0, 0, 2, 1, .5, .4,  .8, .7, 0,  //
                               1, 3,  0, .2,  .2, .6, .5,  0, 1, 3, 1, .7, .65, .9, .9, 1,  //
                               2, -1, 0, 0,   0,  0,  0,   0, 3, 1, 0, .3, .3,  .5, .5, 0,  //
                               3, 2,  1, .31, .3, .5, .5,  0, 3, 2, 1, .6, .1,  .9, .3, 0,  //
                               4, 1,  0, .05, .5, .4, .95, 0});
  // Rows of item -1 stand for no object.
  net->blob_by_name("objects")->mutable_cpu_data<double>()[4 * 8] = -1;
  return net;
}

TEST(HostThreadsTest, MultiBoxLossIsTheSameForAnyNumber) {
  for (const std::string options :
       {"mining_type: MAX_NEGATIVE", "mining_type: NONE",
        "mining_type: MAX_NEGATIVE "
        "conf_loss_type: LOGISTIC use_prior_for_matching: false overlap_threshold: 0.2",
        "mining_type: HARD_EXAMPLE sample_size: 20 nms_param { nms_threshold: 0.5 }",
        "mining_type: HARD_EXAMPLE use_prior_for_nms: true nms_param { nms_threshold: 0.5 }"}) {
    SCOPED_TRACE(options);
    ExpectSameForThreads(*MultiBoxNet(options), "loss", {"loc", "conf"});
  }
}

TEST(HostThreadsTest, AnImageWithoutObjectsHasNoGradient) {
  const auto net = MultiBoxNet("mining_type: MAX_NEGATIVE");
  ResultsOf(*net, "loss", {}, 3);
  net->Backward();
  const auto number_of_slopes = [&](int image) {
    const double* slopes = net->blob_by_name("conf")->cpu_diff<double>() + image * 768;
    return 768 - std::count(slopes, slopes + 768, 0.0);
  };
  EXPECT_EQ(number_of_slopes(2), 0);
  for (const int image : {0, 1, 3, 4}) EXPECT_GE(number_of_slopes(image), 4 * kBoxClasses) << image;
}

// Images 1, 3 and 4 are wrong, and others compute them.
TEST(HostThreadsTest, TheFirstImagesErrorIsReported) {
  const auto net = MultiBoxNet("mining_type: MAX_NEGATIVE");
  for (const int row : {2, 6, 8})
    net->blob_by_name("objects")->mutable_cpu_data<double>()[row * 8 + 1] = 40 + row;
  for (const int threads : {1, 2, 3, 5, 1, 2, 3, 5}) {
    EXPECT_THAT(ErrorText<InvalidArgument>([&] { ResultsOf(*net, "loss", {}, threads); }),
                HasSubstr("label 42 of item 1 is outside 0..3"))
        << threads;
  }
}

TEST(HostThreadsTest, ForEachItemThrowsAsALoopDoes) {
  for (int round = 0; round < 20; ++round) {
    for (const int threads : {1, 2, 3, 4, 7, 8}) {
      const ThreadsForNow for_now(threads);
      const auto call = [&] {
        ForEachItem(8, [&](int64_t item) {
          if (item == 1 || item == 3 || item == 6) throw InvalidArgument(StrCat("item ", item));
        });
      };
      EXPECT_EQ(ErrorText<InvalidArgument>(call), "item 1") << threads;
    }
  }
}

double SoftmaxLoss(const double* scores, int classes, int label) {
  const double largest = *std::max_element(scores, scores + classes);
  double sum = 0;
  for (int c = 0; c < classes; ++c) sum += std::exp(scores[c] - largest);
  return std::log(sum) + largest - scores[label];
}

// The hardest three boxes for each matched one, of all that no object overlaps by half: those with
// the largest losses, of equal ones the first.
TEST(HostThreadsTest, MiningFindsTheHardestOfAll) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<std::function<void(double*)>> changes = {
      [](double*) {},
      // Few different losses, then a single one.
      [](double* x) {
        for (int i = 0; i < kPriors * kBoxClasses; ++i) x[i] = std::round(x[i]);
      },
      [](double* x) { std::fill_n(x, kPriors * kBoxClasses, 0.5); },
      [](double* x) {
        for (int i = 0; i < kPriors * kBoxClasses; ++i) x[i] *= 1e-4;
      },
      [](double* x) {
        for (int i = 0; i < kPriors * kBoxClasses; ++i) x[i] *= 1e9;
      },
      [&](double* x) { x[701] = NAN, x[80] = infinity, x[280] = -infinity, x[401] = -infinity; }};
  for (size_t change = 0; change < changes.size(); ++change) {
    SCOPED_TRACE(change);
    const auto net = MultiBoxNet("mining_type: MAX_NEGATIVE neg_pos_ratio: 3");
    double* const scores = net->blob_by_name("conf")->mutable_cpu_data<double>();
    changes[change](scores);
    const auto all = MultiBoxNet("mining_type: NONE");
    ResultsOf(*net, "loss", {"conf"}, 2);
    ResultsOf(*all, "loss", {"loc"}, 2);
    std::vector<ops::ScoredBox> candidates;
    int matched = 0;
    for (int i = 0; i < kPriors; ++i) {
      const double* slopes = all->blob_by_name("loc")->cpu_diff<double>() + i * 4;
      if (std::count(slopes, slopes + 4, 0.0) < 4) {
        ++matched;
        continue;
      }
      const double loss = SoftmaxLoss(scores + i * kBoxClasses, kBoxClasses, 0);
      candidates.push_back({std::isnan(loss) ? infinity : loss, i});
    }
    ASSERT_GE(matched, 2);
    ops::KeepBest(&candidates, 3 * matched);
    std::vector<int64_t> expected, found;
    for (const ops::ScoredBox& one : candidates) expected.push_back(one.index);
    std::ranges::sort(expected);
    for (int i = 0; i < kPriors; ++i) {
      const double* slopes = net->blob_by_name("conf")->cpu_diff<double>() + i * kBoxClasses;
      const double* location = all->blob_by_name("loc")->cpu_diff<double>() + i * 4;
      if (std::count(location, location + 4, 0.0) < 4) continue;
      if (std::count(slopes, slopes + kBoxClasses, 0.0) < kBoxClasses) found.push_back(i);
    }
    EXPECT_EQ(found, expected);
  }
}

TEST(HostThreadsTest, CtcLossIsTheSameForAnyNumber) {
  constexpr int kSequences = 31;
  const auto net =
      NetOf(kInDouble + InputOf("scores", "120 31 6") + InputOf("labels", "31 8") +
            "layer { name: 'l' type: 'WarpCTC' bottom: 'scores' bottom: 'labels' top: 'loss' "
            "propagate_down: true propagate_down: false }");
  FillRandomly(*net, "scores", -3, 3);
  std::vector<double> labels(kSequences * 8);  // 0 is the blank, so that sequence 0 has no label
  for (int i = 0; i < kSequences; ++i) {
    for (int k = 0; k < i % 9; ++k) labels[i * 8 + k] = 1 + (i + k * k) % 5;
  }
  SetDoubles(*net, "labels", labels);
  ExpectSameForThreads(*net, "loss", {"scores"});
}

TEST(HostThreadsTest, DetectionsAreTheSameForAnyNumber) {
  const auto yolo2 = NetOf(kInDouble + InputOf("map", "5 16 6 7") +
                           "layer { name: 'd' type: 'YoloDetectionOutput' bottom: 'map' top: 'd' "
                           "yolo_detection_output_param { num_classes: 3 num_box: 2 biases: 1 "
                           "biases: 2 biases: 3 biases: 1 confidence_threshold: 0.3 } }");
  FillRandomly(*yolo2, "map", -2, 2);
  ExpectSameForThreads(*yolo2, "d");
  EXPECT_GT(yolo2->blob_by_name("d")->count(), 20 * 7);
  const auto yolo3 = NetOf(
      kInDouble + InputOf("map", "5 16 6 7") + InputOf("large", "5 16 3 3") +
      "layer { name: 'd' type: 'Yolov3DetectionOutput' bottom: 'map' bottom: 'large' top: 'd' "
      "yolov3_detection_output_param { num_classes: 3 num_box: 2 biases: 10 biases: 20 biases: 30 "
      "biases: 10 anchors_scale: 8 anchors_scale: 16 mask: 0 mask: 1 mask: 1 mask: 0 "
      "confidence_threshold: 0.3 } }");
  FillRandomly(*yolo3, "map", -2, 2);
  FillRandomly(*yolo3, "large", -2, 2);
  ExpectSameForThreads(*yolo3, "d");
  EXPECT_GT(yolo3->blob_by_name("d")->count(), 20 * 7);
  const auto proposals =
      NetOf(kInDouble + InputOf("scores", "5 18 4 6") + InputOf("offsets", "5 36 4 6") +
            InputOf("sizes", "1 3") +
            "layer { name: 'd' type: 'Proposal' bottom: 'scores' bottom: 'offsets' bottom: 'sizes' "
            "top: 'd' proposal_param { post_nms_topn: 12 } }");
  FillRandomly(*proposals, "scores", 0, 1);
  FillRandomly(*proposals, "offsets", -0.5, 0.5);
  SetDoubles(*proposals, "sizes", {64, 96, 1});
  ExpectSameForThreads(*proposals, "d");
  EXPECT_EQ(proposals->blob_by_name("d")->count(), 5 * 12 * 5);
}

TEST(HostThreadsTest, PeaksAndLabelsAreTheSameForAnyNumber) {
  const auto peaks = NetOf(kInDouble + InputOf("maps", "5 4 9 9") +
                           "layer { name: 'd' type: 'Nms' bottom: 'maps' top: 'd' "
                           "nms_param { threshold: 0.1 max_peaks: 4 num_parts: 3 } }");
  FillRandomly(*peaks, "maps", 0, 1);
  ExpectSameForThreads(*peaks, "d");
  const auto labels =
      NetOf(kInDouble + InputOf("scores", "12 5 4") +
            "layer { name: 'd' type: 'CTCDecoder' bottom: 'scores' top: 'd' top: 'p' "
            "forward_type: DOUBLE ctc_decoder_param { method: BEAM beam_width: 4 } }");
  FillRandomly(*labels, "scores", -3, 3);
  ExpectSameForThreads(*labels, "d");
  ExpectSameForThreads(*labels, "p");
  double* const scores = labels->blob_by_name("scores")->mutable_cpu_data<double>();
  scores[(3 * 5 + 4) * 4] = scores[(9 * 5 + 1) * 4] = NAN;
  for (const int threads : {1, 2, 3, 5}) {
    EXPECT_THAT(ErrorText<InvalidArgument>([&] { ResultsOf(*labels, "d", {}, threads); }),
                HasSubstr("the scores of sequence 1 at time step 9"))
        << threads;
  }
}

}  // namespace
}  // namespace caffe
