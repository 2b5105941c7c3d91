// Compares YOLO's losses with loops over boxes, then over objects, as darknet trains.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

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

constexpr int kItems = 2, kBoxes = 2, kObjectClasses = 3, kCellRows = 3, kCellColumns = 4;
constexpr int kEntries = 5 + kObjectClasses;

// Centre and size as fractions of the image.
struct Box {
  double x, y, w, h;
};
struct Object {
  int label;
  Box box;
};
using Truth = std::array<std::vector<Object>, kItems>;

const Truth kTruth = {{{{2, {0.4, 0.5, 0.2, 0.3}},    // anchor 0
                        {0, {0.9, 0.1, 0.7, 0.4}},    // anchor 1, beyond the image's edge
                        {1, {0.42, 0.6, 0.25, 0.3}},  // the same box as the first one
                        {1, {1.0, 0.99, 0.05, 0.7}}},
                       {}}};

double Logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

double Overlap(double a, double a_size, double b, double b_size) {
  return std::max(
      0.0, std::min(a + a_size / 2, b + b_size / 2) - std::max(a - a_size / 2, b - b_size / 2));
}

double IoU(const Box& a, const Box& b) {
  const double both = Overlap(a.x, a.w, b.x, b.w) * Overlap(a.y, a.h, b.y, b.h);
  return both / (a.w * a.h + b.w * b.h - both);
}

struct Rules {
  bool is_3 = false;           // YOLO 3
  bool squares = true;         // squared errors of sigmoids
  bool softmax = true;         // softmax over classes
  bool match_anchors = true;   // otherwise predicted sizes
  bool learns_overlap = true;  // the target of objectness
  double thresh = 0.2, coord = 5, object = 1, noobject = 0.5, of_class = 1;
  std::vector<Box> anchors;  // w and h as fractions of the image
  std::array<int, kBoxes> mask = {0, 1};
};

// The reference for the map: each number's term of the loss and its slope.
class Reference {
 public:
  Reference(const Rules& rules, const Blob& map, const Truth& truth)
      : rules_(rules), map_(map), term(map.count()), slope(map.count()) {
    for (int item = 0; item < kItems; ++item) {
      for (int row = 0; row < kCellRows; ++row) {
        for (int column = 0; column < kCellColumns; ++column) {
          for (int box = 0; box < kBoxes; ++box) LearnNothing(item, box, row, column, truth[item]);
        }
      }
      for (const Object& object : truth[item]) Learn(item, object);
    }
    for (double x : term) loss += x / kItems;
  }

 private:
  int At(int item, int box, int entry, int row, int column) const {
    return (((item * kBoxes + box) * kEntries + entry) * kCellRows + row) * kCellColumns + column;
  }
  double X(int i) const { return map_.cpu_data<float>()[i]; }

  Box Predicted(int item, int box, int row, int column) const {
    const Box& anchor = rules_.anchors[rules_.mask[box]];
    const auto x = [&](int entry) { return X(At(item, box, entry, row, column)); };
    return {(column + Logistic(x(0))) / kCellColumns, (row + Logistic(x(1))) / kCellRows,
            std::exp(x(2)) * anchor.w, std::exp(x(3)) * anchor.h};
  }

  void Set(int i, double a_term, double a_slope) { term[i] = a_term, slope[i] = a_slope; }
  void LearnLinear(int i, double weight, double value) {
    Set(i, weight * std::pow(X(i) - value, 2) / 2, weight * (X(i) - value));
  }
  void LearnSigmoid(int i, double weight, double value, bool squares) {
    const double s = Logistic(X(i)), error = s - value;
    if (squares) return Set(i, weight * error * error / 2, weight * error * s * (1 - s));
    Set(i, -weight * (value * std::log(s) + (1 - value) * std::log(1 - s)), weight * error);
  }

  void LearnNothing(int item, int box, int row, int column, const std::vector<Object>& objects) {
    double best = 0;
    for (const Object& object : objects) {
      best = std::max(best, IoU(Predicted(item, box, row, column), object.box));
    }
    if (best > rules_.thresh) return;
    LearnSigmoid(At(item, box, 4, row, column), rules_.noobject, 0, rules_.squares);
  }

  void Learn(int item, const Object& object) {
    const Box& truth = object.box;
    const int column = std::min(static_cast<int>(truth.x * kCellColumns), kCellColumns - 1);
    const int row = std::min(static_cast<int>(truth.y * kCellRows), kCellRows - 1);
    int best = 0;
    double most = 0;
    const int candidates = rules_.match_anchors ? static_cast<int>(rules_.anchors.size()) : kBoxes;
    for (int i = 0; i < candidates; ++i) {
      const Box size = rules_.match_anchors ? rules_.anchors[i] : Predicted(item, i, row, column);
      const double iou = IoU({0, 0, size.w, size.h}, {0, 0, truth.w, truth.h});
      if (iou > most) most = iou, best = i;
    }
    const auto found = std::find(rules_.mask.begin(), rules_.mask.end(), best);
    if (found == rules_.mask.end()) return;
    const int box = static_cast<int>(found - rules_.mask.begin());
    const auto at = [&](int entry) { return At(item, box, entry, row, column); };
    const bool weighs_size = rules_.is_3 || !rules_.learns_overlap;
    const double weight = rules_.coord * (weighs_size ? 2 - truth.w * truth.h : 1);
    LearnSigmoid(at(0), weight, truth.x * kCellColumns - column, rules_.squares);
    LearnSigmoid(at(1), weight, truth.y * kCellRows - row, rules_.squares);
    LearnLinear(at(2), weight, std::log(truth.w / rules_.anchors[best].w));
    LearnLinear(at(3), weight, std::log(truth.h / rules_.anchors[best].h));
    const double iou = IoU(Predicted(item, box, row, column), truth);
    LearnSigmoid(at(4), rules_.object, rules_.learns_overlap ? iou : 1, rules_.squares);
    double sum = 0;
    for (int c = 0; c < kObjectClasses; ++c) sum += std::exp(X(at(5 + c)));
    const bool has_object = slope[at(5)] != 0;
    for (int c = 0; c < kObjectClasses; ++c) {
      const bool is_label = c == object.label;
      if (rules_.softmax) {
        const double p = std::exp(X(at(5 + c))) / sum;
        Set(at(5 + c), is_label ? -rules_.of_class * std::log(p) : 0,
            rules_.of_class * (p - (is_label ? 1 : 0)));
      } else if (is_label || !rules_.is_3 || !has_object) {  // YOLO 3's boxes keep other labels
        LearnSigmoid(at(5 + c), rules_.of_class, is_label ? 1 : 0, rules_.is_3 && rules_.squares);
      }
    }
  }

  const Rules rules_;
  const Blob& map_;

 public:
  std::vector<double> term, slope;
  double loss = 0;
};

std::unique_ptr<Net> MakeLossNet(const std::string& labels, const std::string& layer) {
  return NetOf(
      "force_backward: true state { phase: TRAIN } layer { name: 'in' type: 'Input' top: 'map' "
      "top: 'truth' input_param { shape { dim: 2 dim: 16 dim: 3 dim: 4 } shape { " +
      labels + " } } } layer { name: 'l' bottom: 'map' bottom: 'truth' top: 'loss' " + layer +
      " propagate_down: true propagate_down: false }");
}

void FillMap(Net& net) {
  Blob& map = *net.blob_by_name("map");
  for (int i = 0; i < map.count(); ++i) {
    map.mutable_cpu_data<float>()[i] = static_cast<float>(1.5 * std::sin(i * i + 2.0));
  }
}

// Rows (class, x, y, width, height), five for each item.
void FillRows(Net& net, const Truth& truth) {
  float* rows = net.blob_by_name("truth")->mutable_cpu_data<float>();
  std::fill_n(rows, kItems * 5 * 5, 0.0f);
  for (int item = 0; item < kItems; ++item) {
    for (size_t k = 0; k < truth[item].size(); ++k) {
      const Object& object = truth[item][k];
      const double row[] = {static_cast<double>(object.label), object.box.x, object.box.y,
                            object.box.w, object.box.h};
      std::copy(row, row + 5, rows + (item * 5 + k) * 5);
    }
  }
}

void ExpectReference(Net& net, const Rules& rules, const Truth& truth) {
  FillMap(net);
  net.Forward();
  net.Backward();
  const Blob& map = *net.blob_by_name("map");
  const Reference reference(rules, map, truth);
  EXPECT_NEAR(net.blob_by_name("loss")->cpu_data<float>()[0], reference.loss, 1e-4);
  for (int i = 0; i < map.count(); ++i) {
    EXPECT_NEAR(map.cpu_diff<float>()[i], reference.slope[i] / kItems, 1e-5) << i;
  }
  // There are objects, free boxes and others; otherwise the test would say little.
  const auto learning = static_cast<int64_t>(reference.slope.size()) -
                        std::count(reference.slope.begin(), reference.slope.end(), 0);
  EXPECT_GT(learning, kItems * kBoxes * kCellRows * kCellColumns);
}

constexpr char kRegion[] =
    "num: 2 num_class: 3 biases: 0.8 biases: 0.9 biases: 2.5 biases: 1.5 thresh: 0.3 ";
const std::vector<Box> kRegionAnchors = {{0, 0, 0.8 / kCellColumns, 0.9 / kCellRows},
                                         {0, 0, 2.5 / kCellColumns, 1.5 / kCellRows}};

TEST(RegionLossTest, IsThatOfBoxesAndObjects) {
  const auto expect = [](const std::string& options, Rules rules) {
    SCOPED_TRACE(options);
    rules.anchors = kRegionAnchors, rules.thresh = 0.3;
    const auto net =
        MakeLossNet("dim: 2 dim: 1 dim: 5 dim: 5",
                    "type: 'RegionLoss' region_loss_param { " + (kRegion + options) + " }");
    FillRows(*net, kTruth);
    ExpectReference(*net, rules, kTruth);
  };
  expect("", {});
  expect("rescore: 0 coord_scale: 2 object_scale: 3 noobject_scale: 0.25 class_scale: 0.75",
         {.learns_overlap = false, .coord = 2, .object = 3, .noobject = 0.25, .of_class = 0.75});
  expect("bias_match: 0 softmax: 0", {.softmax = false, .match_anchors = false});
}

constexpr char kYolo3[] =
    "num: 2 num_class: 3 anchors_scale: 8 thresh: 0.3 mask: 2 mask: 0 biases: 6.4 biases: 7.2 "
    "biases: 2 biases: 16 biases: 20 biases: 12 ";

TEST(Yolov3Test, IsThatOfBoxesAndObjects) {
  const auto expect = [](const std::string& options, Rules rules) {
    SCOPED_TRACE(options);
    rules.is_3 = true, rules.softmax = rules.learns_overlap = false;
    rules.anchors = {{0, 0, 0.2, 0.3}, {0, 0, 0.0625, 2 / 3.0}, {0, 0, 0.625, 0.5}};
    rules.mask = {2, 0}, rules.thresh = 0.3, rules.noobject = 1;
    const auto net =
        MakeLossNet("dim: 2 dim: 25", "type: 'Yolov3' yolov3_param { " + (kYolo3 + options) + " }");
    FillRows(*net, kTruth);
    ExpectReference(*net, rules, kTruth);
  };
  expect("object_scale: 7 noobject_scale: 7", {.squares = false});
  expect("use_logic_gradient: true object_scale: 3 coord_scale: 2 class_scale: 0.5",
         {.coord = 2, .object = 3, .of_class = 0.5});
}

TEST(RegionLossTest, ReadsRowsOfAnnotatedData) {
  const auto net =
      MakeLossNet("dim: 1 dim: 1 dim: 6 dim: 8",
                  std::string("type: 'RegionLoss' region_loss_param { ") + kRegion + "}");
  Truth truth = kTruth;
  truth[1] = {{0, {0.3, 0.2, 0.4, 0.3}}};
  float* rows = net->blob_by_name("truth")->mutable_cpu_data<float>();
  std::fill_n(rows, 48, -1.0f);
  float* row = rows + 8;  // the first row is empty
  for (int item = 0; item < kItems; ++item) {
    for (const auto& [label, box] : truth[item]) {
      const double numbers[] = {
          static_cast<double>(item), label + 1.0,       0, box.x - box.w / 2, box.y - box.h / 2,
          box.x + box.w / 2,         box.y + box.h / 2, 0};
      row = std::copy(numbers, numbers + 8, row);
    }
  }
  ExpectReference(*net, {.thresh = 0.3, .anchors = kRegionAnchors}, truth);
}

TEST(YoloLossTest, SayWhatIsWrong) {
  const auto refuses = [](const std::string& labels, const std::string& layer,
                          const std::string& reason) {
    EXPECT_THAT(ErrorText<Error>([&] { MakeLossNet(labels, layer); }), HasSubstr(reason));
  };
  const std::string rows = "dim: 2 dim: 25";
  const auto region = [](const std::string& options) {
    return "type: 'RegionLoss' region_loss_param { " + options + " }";
  };
  const auto yolo3 = [](const std::string& options) {
    return "type: 'Yolov3' yolov3_param { " + options + " }";
  };
  refuses("dim: 2 dim: 24", region(kRegion), "bottom 1 has shape 2x24; it must hold 2 times rows");
  refuses(rows, region(std::string(kRegion) + "biases: 1 biases: 1"),
          "there are 6 biases; 2 boxes (num) need a width and a height each");
  refuses(rows, region(std::string(kRegion) + "coords: 5"), "coords is 5; a box has 4");
  refuses(rows, region(std::string(kRegion) + "softmax_tree: 'a'"), "has softmax_tree");
  refuses(rows, region("num: 2 num_class: 3 biases: 1 biases: -1"), "bias 1 is -1");
  refuses(rows, region("num: 2 num_class: 4 biases: 1 biases: 1 biases: 1 biases: 1"),
          "2 boxes of 4 classes need a map with 18 channels");
  refuses(rows, yolo3("num: 40 num_class: 3 biases: 1 biases: 1"),
          "num is 40; it must be in 1..32");
  refuses(rows, yolo3("num: 2 num_class: 3 biases: 1 biases: 1 mask: 0"),
          "there are 1 masks; 2 boxes (num) need one each");
  refuses(rows, yolo3("num: 1 num_class: 11 biases: 1 biases: 1 mask: 1"),
          "mask 1 names an anchor that the 2 biases do not have");
  const auto net = MakeLossNet(rows, region(kRegion));
  Truth truth = kTruth;
  truth[0][1].label = 3;
  FillRows(*net, truth);
  EXPECT_THAT(
      ErrorText<InvalidArgument>([&] { net->Forward(); }),
      HasSubstr("row 1 of the ground truth of item 0 has class 3 counted from 0; there are 3"));
}

}  // namespace
}  // namespace caffe
