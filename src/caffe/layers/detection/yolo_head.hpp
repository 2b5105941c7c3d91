// Reads the output map of YOLO networks (Redmon and Farhadi 2017, "YOLO9000").
#pragma once

#include <cmath>
#include <vector>

#include "caffe/core/saturating_product.hpp"
#include "caffe/layers/detection/detection_blobs.hpp"

namespace caffe {

// A map (N, boxes x (5 + classes), H, W). Each box of a cell has x, y, width, height, objectness,
// and its classes, all before their activation.
class YoloHead {
 public:
  YoloHead(const TensorView& map, int64_t boxes, int64_t classes)
      : values_(ValuesOf(map)),
        boxes_(boxes),
        classes_(classes),
        height_(map.shape[2]),
        width_(map.shape[3]) {}

  static void RequireMap(const Shape& map, int bottom, int64_t boxes, int64_t classes) {
    const int64_t channels = SaturatingProduct({boxes, 5 + classes});
    Require(map.num_axes() == 4 && map[1] == channels, "bottom ", bottom, " has shape ", map, "; ",
            boxes, " boxes of ", classes, " classes need a map with ", channels,
            " channels (N,C,H,W)");
  }

  // Requires maps of the same items.
  static void RequireMaps(const std::vector<Shape>& maps, int64_t boxes, int64_t classes) {
    for (size_t i = 0; i < maps.size(); ++i) {
      RequireMap(maps[i], static_cast<int>(i), boxes, classes);
      Require(maps[i][0] == maps[0][0], "bottoms 0 and ", i, " have ", maps[0][0], " and ",
              maps[i][0], " items; they must agree");
    }
  }

  int64_t height() const { return height_; }
  int64_t width() const { return width_; }

  // Calls fn(box, place) for each box of each cell, row by row.
  template <typename Fn>
  void ForEachBox(const Fn& fn) const {
    for (int64_t place = 0; place < height_ * width_; ++place) {
      for (int64_t box = 0; box < boxes_; ++box) fn(box, place);
    }
  }

  // In coordinates relative to the image, like an anchor's width and height.
  ops::Box BoxAt(int64_t item, int64_t box, int64_t place, double width, double height) const {
    const auto at = [&](int64_t entry) { return At(item, box, entry, place); };
    const double x =
        (static_cast<double>(place % width_) + Sigmoid(at(0))) / static_cast<double>(width_);
    const double y =
        (static_cast<double>(place / width_) + Sigmoid(at(1))) / static_cast<double>(height_);
    const double w = std::exp(at(2)) * width / 2, h = std::exp(at(3)) * height / 2;
    return {x - w, y - h, x + w, y + h};
  }
  // The probability of an object.
  double ObjectAt(int64_t item, int64_t box, int64_t place) const {
    return Sigmoid(At(item, box, 4, place));
  }
  double ClassAt(int64_t item, int64_t box, int64_t place, int64_t label) const {
    return At(item, box, 5 + label, place);
  }

  static double Sigmoid(double x) { return 0.5 * std::tanh(0.5 * x) + 0.5; }

 private:
  double At(int64_t item, int64_t box, int64_t entry, int64_t place) const {
    const int64_t channel = (item * boxes_ + box) * (5 + classes_) + entry;
    return values_[channel * height_ * width_ + place];
  }

  std::vector<double> values_;
  int64_t boxes_, classes_, height_, width_;
};

// Best first, without those that overlap a better one, regardless of class.
inline std::vector<Detection> SuppressDetections(const std::vector<Detection>& all,
                                                 double threshold) {
  std::vector<ops::ScoredBox> candidates;
  std::vector<ops::Box> boxes;
  for (const Detection& one : all) {
    candidates.push_back({one.score, static_cast<int64_t>(boxes.size())});
    boxes.push_back(one.box);
  }
  ops::KeepBest(&candidates, -1);
  std::vector<Detection> kept;
  for (const ops::ScoredBox& one : ops::Suppress(candidates, boxes, threshold, 1)) {
    kept.push_back(all[one.index]);
  }
  return kept;
}

}  // namespace caffe
