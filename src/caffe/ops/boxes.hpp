// Boxes of detection nets: overlap, encoding against prior boxes, suppression (Liu et al. 2016,
// "SSD: Single shot multibox detector").
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "caffe/export.hpp"

namespace caffe::ops {

// Coordinates relative to the image: 0 is its left or top edge, 1 its right or bottom edge.
struct CAFFE_EXPORT Box {
  double xmin = 0, ymin = 0, xmax = 0, ymax = 0;

  double width() const { return xmax - xmin; }
  double height() const { return ymax - ymin; }
  // 0 for an inverted box.
  double area() const { return width() < 0 || height() < 0 ? 0 : width() * height(); }
  // False for a box with NaN edges, which has no position.
  bool crosses_edge() const { return xmin < 0 || ymin < 0 || xmax > 1 || ymax > 1; }
  Box Clipped() const;
  friend bool operator==(const Box&, const Box&) = default;
};

// Area of the intersection.
inline double CommonArea(const Box& a, const Box& b) {
  const double width = std::min(a.xmax, b.xmax) - std::max(a.xmin, b.xmin);
  const double height = std::min(a.ymax, b.ymax) - std::max(a.ymin, b.ymin);
  return width <= 0 || height <= 0 ? 0 : width * height;
}

// Intersection over union, in [0, 1].
inline double Overlap(const Box& a, const Box& b) {
  const double common = CommonArea(a, b);
  return common <= 0 ? 0 : common / (a.area() + b.area() - common);
}

// The share of `of` that `by` covers, in [0, 1].
inline double Coverage(const Box& of, const Box& by) {
  const double common = CommonArea(of, by);
  return common <= 0 ? 0 : common / of.area();
}

// How a box is written relative to a prior box; PriorBoxParameter.CodeType's numbers.
enum class BoxCode { kCorner = 1, kCenterSize = 2, kCornerSize = 3 };

using BoxCodes = std::array<double, 4>;

// If `divides`, codes are divided by the prior's variances; otherwise the loss allows for them.
CAFFE_EXPORT BoxCodes Encode(const Box& box, const Box& prior, const BoxCodes& variances,
                             BoxCode code, bool divides);
// The inverse of Encode().
CAFFE_EXPORT Box Decode(const BoxCodes& codes, const Box& prior, const BoxCodes& variances,
                        BoxCode code, bool multiplies);

struct ScoredBox {
  double score = 0;
  int64_t index = 0;  // of its prior box
};

// Returns the `candidates` that are kept, best first. A kept box suppresses those that overlap it
// by more than `threshold`. If eta < 1, the threshold is multiplied by eta after each kept box
// while it is above 0.5.
CAFFE_EXPORT std::vector<ScoredBox> Suppress(const std::vector<ScoredBox>& candidates,
                                             const std::vector<Box>& boxes, double threshold,
                                             double eta);
// The first `most` of them (negative: all), in less time.
CAFFE_EXPORT std::vector<ScoredBox> Suppress(const std::vector<ScoredBox>& candidates,
                                             const std::vector<Box>& boxes, double threshold,
                                             double eta, int most);

// The mean, weighted by score, of the candidates that overlap `box` by at least `least_overlap`:
// box voting (Gidaris and Komodakis 2015). Returns `box` if no score is above 0,
// or one is infinite.
CAFFE_EXPORT Box Vote(const std::vector<ScoredBox>& candidates, const std::vector<Box>& boxes,
                      const Box& box, double least_overlap);

// Sort key of a score: a NaN, which has no order, counts as -infinity.
CAFFE_EXPORT double ScoreRank(double score);

// Keeps the best top_k (-1: all), in any order but that the worst of those kept is the last if one
// was dropped. Equal scores: the lower index is better; NaN is worst.
CAFFE_EXPORT void SelectBest(std::vector<ScoredBox>* candidates, int top_k);

// Sorts by score, best first (equal scores by lower index, NaN last), and keeps at most top_k (-1:
// all).
CAFFE_EXPORT void KeepBest(std::vector<ScoredBox>* candidates, int top_k);

}  // namespace caffe::ops
