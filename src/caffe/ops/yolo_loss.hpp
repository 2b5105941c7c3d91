// YOLO's losses (Redmon and Farhadi 2017, "YOLO9000"; 2018, "YOLOv3").
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "caffe/ops/each_element.hpp"

namespace caffe::ops {

// Loss term of one number x of a map; s is the sigmoid of x.
struct YoloTarget {
  enum Kind {
    kNothing,
    kLinear,        // weight / 2 (x - value)^2
    kSquared,       // weight / 2 (s - value)^2
    kCrossEntropy,  // -weight (value log s + (1 - value) log(1 - s))
    kSoftmax,       // -weight log(softmax of the box's classes) where value is 1
  };
  Kind kind = kNothing;
  double weight = 0, value = 0;
};

// A ground-truth object: centre and size in cells, class from 0.
struct YoloObject {
  double label = 0, x = 0, y = 0, width = 0, height = 0;
};

// A map (N, boxes x (5 + classes), height, width): each box of a cell has x, y, width, height,
// objectness and its classes, all before activation. Each object belongs to one box: that of the
// cell of its centre and of the anchor that is most similar in size.
//
// Ground truth is rows (class, x, y, width, height) relative to the image, `rows` for each item;
// the first row without a positive size ends the list. With `is_of_ssd` it is `rows` for all items
// together: (item, class from 1, instance, xmin, ymin, xmax, ymax, difficult).
struct YoloLossOp {
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
  static constexpr OperandSet kExactInputs = {1, 2};
  static constexpr int kMostAnchors = 32;

  int boxes = 1, classes = 1, height = 1, width = 1;
  int rows = 0;
  bool is_of_ssd = false;
  int anchors = 1;
  float widths[kMostAnchors] = {}, heights[kMostAnchors] = {};  // of anchors, in cells
  int mask[kMostAnchors] = {};                                  // the anchor of each box
  bool matches_anchors = true;  // objects match anchors; false: the sizes predicted at their cell
  float free_above = 0.5f;      // a box without an object has no objectness loss above this IoU
  float coord_scale = 1, object_scale = 1, noobject_scale = 1, class_scale = 1;
  bool weighs_size = false;     // weights coordinates by 2 - area: small objects count more
  bool learns_overlap = false;  // objectness target of a box with an object is its IoU, else 1
  bool keeps_labels = false;    // a box learns the classes of all its objects, else of the last
  YoloTarget::Kind of_place = YoloTarget::kSquared;  // x, y and objectness
  YoloTarget::Kind of_class = YoloTarget::kSoftmax;

  std::string Attributes() const {
    return StrCat(boxes, " boxes of ", anchors, " anchors, ", classes, " classes");
  }

 protected:
  // A box of a cell.
  struct Place {
    int64_t item = 0;
    int box = 0, row = 0, column = 0;
  };

  CAFFE_HOST_DEVICE inline int entries() const { return 5 + classes; }
  CAFFE_HOST_DEVICE inline int64_t IndexOf(const Place& place, int entry) const {
    const int64_t channel = (place.item * boxes + place.box) * entries() + entry;
    return (channel * height + place.row) * width + place.column;
  }
  CAFFE_HOST_DEVICE inline int64_t MatchIndexOf(const Place& place) const {
    return ((place.item * boxes + place.box) * height + place.row) * width + place.column;
  }
  // Position of element i of a tensor that has `channels` for each box.
  CAFFE_HOST_DEVICE inline Place PlaceOf(int64_t i, int channels, int* entry) const {
    Place place;
    place.column = static_cast<int>(i % width);
    i /= width;
    place.row = static_cast<int>(i % height);
    i /= height;
    *entry = static_cast<int>(i % channels);
    i /= channels;
    place.box = static_cast<int>(i % boxes);
    place.item = i / boxes;
    return place;
  }

  CAFFE_HOST_DEVICE static inline double Sigmoid(double x) {
    return 0.5 * std::tanh(0.5 * x) + 0.5;
  }
  CAFFE_HOST_DEVICE static inline double Overlap(double a, double a_size, double b, double b_size) {
    const double end = std::min(a + a_size / 2, b + b_size / 2);
    const double begin = std::max(a - a_size / 2, b - b_size / 2);
    return std::max(end - begin, 0.0);
  }
  CAFFE_HOST_DEVICE static inline double IoU(const YoloObject& a, const YoloObject& b) {
    const double both = Overlap(a.x, a.width, b.x, b.width) * Overlap(a.y, a.height, b.y, b.height);
    const double either = a.width * a.height + b.width * b.height - both;
    return either > 0 ? both / either : 0;
  }

  // The cell of a position, the nearest one beyond the edges; 0 for NaN.
  CAFFE_HOST_DEVICE static inline int Within(double place, int cells) {
    return static_cast<int>(std::min(std::max(0.0, place), cells - 1.0));
  }
  CAFFE_HOST_DEVICE inline int ColumnOf(const YoloObject& object) const {
    return Within(object.x, width);
  }
  CAFFE_HOST_DEVICE inline int RowOf(const YoloObject& object) const {
    return Within(object.y, height);
  }
  CAFFE_HOST_DEVICE inline bool IsLabel(double label) const {
    return label >= 0 && label < classes;
  }

  // The box that the map predicts.
  template <typename Map>
  CAFFE_HOST_DEVICE inline YoloObject BoxAt(const Map& map, const Place& place) const {
    const int anchor = mask[place.box];
    YoloObject box;
    box.x = place.column + Sigmoid(map[IndexOf(place, 0)]);
    box.y = place.row + Sigmoid(map[IndexOf(place, 1)]);
    box.width = std::exp(map[IndexOf(place, 2)]) * widths[anchor];
    box.height = std::exp(map[IndexOf(place, 3)]) * heights[anchor];
    return box;
  }

  // The anchor most similar to an object; the first one of equals, or if none can be compared.
  template <typename Map>
  CAFFE_HOST_DEVICE inline int AnchorOf(const Map& map, int64_t item,
                                        const YoloObject& object) const {
    int best = 0;
    double most = 0;
    const int candidates = matches_anchors ? anchors : boxes;
    for (int i = 0; i < candidates; ++i) {
      YoloObject one = object;
      if (matches_anchors) {
        one.width = widths[i], one.height = heights[i];
      } else {
        const YoloObject box = BoxAt(map, Place{item, i, RowOf(object), ColumnOf(object)});
        one.width = box.width, one.height = box.height;
      }
      const double iou = IoU(one, object);
      if (iou > most) most = iou, best = matches_anchors ? i : mask[i];
    }
    return best;
  }

  template <typename Map>
  CAFFE_HOST_DEVICE inline bool IsAt(const Map& map, const YoloObject& object,
                                     const Place& place) const {
    return ColumnOf(object) == place.column && RowOf(object) == place.row &&
           AnchorOf(map, place.item, object) == mask[place.box];
  }

  // Loss term of a box; `match` is the box's element of YoloMatches.
  template <typename Map, typename Labels>
  CAFFE_HOST_DEVICE inline YoloTarget TargetOf(const Map& map, const Labels& labels, double match,
                                               const Place& place, int entry) const {
    if (match <= 0) {
      if (entry != 4 || match < 0) return {};
      return {of_place, noobject_scale, 0};
    }
    int row = static_cast<int>(match) - 1;
    YoloObject object;
    NextObject(labels, place.item, &row, &object);
    if (entry == 4) {
      return {of_place, object_scale, learns_overlap ? IoU(BoxAt(map, place), object) : 1};
    }
    if (entry > 4) {
      const double value = HasLabel(map, labels, object, place, entry - 5) ? 1 : 0;
      return {of_class, IsLabel(object.label) ? class_scale : static_cast<double>(NAN), value};
    }
    const double area = object.width / width * object.height / height;
    const double weight = coord_scale * (weighs_size ? 2 - area : 1);
    const int anchor = mask[place.box];
    if (entry == 0) return {of_place, weight, object.x - place.column};
    if (entry == 1) return {of_place, weight, object.y - place.row};
    if (entry == 2) return {YoloTarget::kLinear, weight, std::log(object.width / widths[anchor])};
    return {YoloTarget::kLinear, weight, std::log(object.height / heights[anchor])};
  }

  // True if a box learns class `label`; `last` is the last object of the box.
  template <typename Map, typename Labels>
  CAFFE_HOST_DEVICE inline bool HasLabel(const Map& map, const Labels& labels,
                                         const YoloObject& last, const Place& place,
                                         int label) const {
    if (static_cast<int>(last.label) == label) return true;
    if (!keeps_labels) return false;
    YoloObject object;
    for (int row = 0; NextObject(labels, place.item, &row, &object);) {
      if (static_cast<int>(object.label) == label && IsAt(map, object, place)) return true;
    }
    return false;
  }

  // Log of the sum of exponentials of a box's classes.
  template <typename Map>
  CAFFE_HOST_DEVICE inline double LogOfSum(const Map& map, const Place& place) const {
    double most = map[IndexOf(place, 5)], sum = 0;
    for (int c = 1; c < classes; ++c) most = std::max<double>(most, map[IndexOf(place, 5 + c)]);
    for (int c = 0; c < classes; ++c) sum += std::exp(map[IndexOf(place, 5 + c)] - most);
    return most + std::log(sum);
  }

 public:
  // Reads the first object of an item from row *row on, and sets *row to the next row; returns
  // false if there is none.
  template <typename Labels>
  CAFFE_HOST_DEVICE inline bool NextObject(const Labels& labels, int64_t item, int* row,
                                           YoloObject* object) const {
    for (; *row < rows; ++*row) {
      const int64_t at = is_of_ssd ? int64_t{*row} * 8 : (item * rows + *row) * 5;
      if (is_of_ssd && labels[at] != item) continue;
      const double w = is_of_ssd ? labels[at + 5] - labels[at + 3] : labels[at + 3];
      const double h = is_of_ssd ? labels[at + 6] - labels[at + 4] : labels[at + 4];
      if (!(w > 0 && h > 0)) {
        if (is_of_ssd) continue;
        return false;
      }
      object->label = is_of_ssd ? labels[at + 1] - 1 : labels[at];
      object->x = (is_of_ssd ? labels[at + 3] + w / 2 : labels[at + 1]) * width;
      object->y = (is_of_ssd ? labels[at + 4] + h / 2 : labels[at + 2]) * height;
      object->width = w * width, object->height = h * height;
      ++*row;
      return true;
    }
    return false;
  }
};

// (map, labels) -> (matches):  for each box of each cell: the row, from 1, of the last object that
// belongs to it; 0 for none; -1 if the box has no object and nothing to learn.
struct YoloMatches : YoloLossOp {
  static constexpr std::string_view kName = "YoloMatches";
  static constexpr int kInputs = 2;

  explicit YoloMatches(const YoloLossOp& options) : YoloLossOp(options) {}

  template <typename A, typename Map, typename Labels>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const Map& map, const Labels& labels) const {
    int entry = 0;
    const Place place = PlaceOf(i, 1, &entry);
    const YoloObject box = BoxAt(map, place);
    int match = 0;
    double most = 0;
    YoloObject object;
    for (int row = 0; NextObject(labels, place.item, &row, &object);) {
      if (IsAt(map, object, place)) match = row;
      most = std::max(most, IoU(box, object));
    }
    return match == 0 && most > free_above ? A(-1) : A(match);
  }
};

// (map, labels, matches) -> (terms):  the loss of each number of the map.
struct YoloTerms : YoloLossOp {
  static constexpr std::string_view kName = "YoloTerms";
  static constexpr int kInputs = 3;

  explicit YoloTerms(const YoloLossOp& options) : YoloLossOp(options) {}

  template <typename A, typename Map, typename Labels, typename Matches>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const Map& map, const Labels& labels,
                                     const Matches& matches) const {
    int entry = 0;
    const Place place = PlaceOf(i, entries(), &entry);
    const YoloTarget target = TargetOf(map, labels, matches[MatchIndexOf(place)], place, entry);
    const double x = map[i];
    switch (target.kind) {
      case YoloTarget::kLinear:
        return A(target.weight / 2 * (x - target.value) * (x - target.value));
      case YoloTarget::kSquared: {
        const double error = Sigmoid(x) - target.value;
        return A(target.weight / 2 * error * error);
      }
      case YoloTarget::kCrossEntropy:
        return A(target.weight *
                 (std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))) - target.value * x));
      case YoloTarget::kSoftmax:
        return target.value == 0 ? A(0) : A(target.weight * (LogOfSum(map, place) - x));
      default:
        return A(0);
    }
  }
};

// (map, labels, matches, dloss) -> (dmap):  coefficient * dloss * derivative of the sum of terms;
// learned IoUs count as constants.
struct YoloGrad : YoloLossOp {
  static constexpr std::string_view kName = "YoloGrad";
  static constexpr int kInputs = 4;
  double coefficient = 1;

  YoloGrad(const YoloLossOp& options, double coefficient)
      : YoloLossOp(options), coefficient(coefficient) {}

  template <typename A, typename Map, typename Labels, typename Matches, typename Dloss>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const Map& map, const Labels& labels,
                                     const Matches& matches, const Dloss& dloss) const {
    int entry = 0;
    const Place place = PlaceOf(i, entries(), &entry);
    const YoloTarget target = TargetOf(map, labels, matches[MatchIndexOf(place)], place, entry);
    const double x = map[i], s = Sigmoid(x);
    double slope = 0;
    if (target.kind == YoloTarget::kLinear) slope = x - target.value;
    if (target.kind == YoloTarget::kSquared) slope = (s - target.value) * s * (1 - s);
    if (target.kind == YoloTarget::kCrossEntropy) slope = s - target.value;
    if (target.kind == YoloTarget::kSoftmax) {
      slope = std::exp(x - LogOfSum(map, place)) - target.value;
    }
    return A(coefficient * dloss[0] * target.weight * slope);
  }
};

}  // namespace caffe::ops
