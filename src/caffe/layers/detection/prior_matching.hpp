// Matches prior boxes with objects (Liu et al. 2016, "SSD: Single shot multibox detector").
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "caffe/layers/detection/detection_blobs.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

inline constexpr int kUnmatched = -1;
inline constexpr int kIgnored = -2;

// The result of matching the prior boxes of one item: for each, the index of its object or one of
// the constants above, and its largest overlap with any object.
struct Matches {
  std::vector<int> object;
  std::vector<double> overlap;
};

// The boxes that overlap any object, and their overlaps with all objects.
class OverlappingBoxes {
 public:
  OverlappingBoxes(const std::vector<GroundTruth>& objects, const std::vector<ops::Box>& boxes,
                   const Matches& matches)
      : objects_(objects.size()) {
    constexpr double kLeastOverlap = 1e-6;
    std::vector<double> row(objects_);
    for (size_t box = 0; box < boxes.size(); ++box) {
      if (matches.object[box] == kIgnored) continue;
      bool has_any = false;
      for (size_t k = 0; k < objects_; ++k) {
        const double overlap = ops::Overlap(boxes[box], objects[k].box);
        const bool is_counted = !(overlap <= kLeastOverlap);  // also NaN
        row[k] = is_counted ? overlap : 0;
        has_any |= is_counted;
      }
      if (!has_any) continue;
      boxes_.push_back(box);
      overlaps_.insert(overlaps_.end(), row.begin(), row.end());
    }
  }

  size_t size() const { return boxes_.size(); }
  // Their indices among all boxes ascend.
  size_t box(size_t i) const { return boxes_[i]; }
  double overlap(size_t i, size_t object) const { return overlaps_[i * objects_ + object]; }

 private:
  const size_t objects_;
  std::vector<size_t> boxes_;
  std::vector<double> overlaps_;
};

// Matches each object with a box, greedily: the largest overlap first, of equal ones that of the
// lowest box, then of the lowest object.
inline void MatchEachObject(const OverlappingBoxes& near, size_t objects, Matches* matches) {
  struct Best {
    double overlap = 0;  // 0: no box is left
    size_t i = 0;
  };
  const auto find = [&](size_t object) {
    Best best;
    for (size_t i = 0; i < near.size(); ++i) {
      if (near.overlap(i, object) > best.overlap && matches->object[near.box(i)] == kUnmatched)
        best = {near.overlap(i, object), i};
    }
    return best;
  };
  std::vector<Best> best(objects);
  for (size_t k = 0; k < objects; ++k) best[k] = find(k);
  for (size_t round = 0; round < objects; ++round) {
    size_t next = 0;
    for (size_t k = 1; k < objects; ++k) {
      const bool is_equal = best[k].overlap == best[next].overlap;
      if (is_equal ? best[k].i < best[next].i : best[k].overlap > best[next].overlap) next = k;
    }
    if (best[next].overlap <= 0) return;
    const size_t taken = best[next].i;
    matches->object[near.box(taken)] = static_cast<int>(next);
    matches->overlap[near.box(taken)] = best[next].overlap;
    best[next] = {};
    for (size_t k = 0; k < objects; ++k) {
      if (best[k].overlap > 0 && best[k].i == taken) best[k] = find(k);
    }
  }
}

// Greedy bipartite matching, so that each object has a box; then (PER_PREDICTION) every other box
// with enough overlap is matched with its best object.
inline Matches Match(const std::vector<GroundTruth>& objects, const std::vector<ops::Box>& boxes,
                     const MultiBoxLossParameter& options) {
  Matches matches{std::vector<int>(boxes.size(), kUnmatched), std::vector<double>(boxes.size(), 0)};
  for (size_t i = 0; options.ignore_cross_boundary_bbox() && i < boxes.size(); ++i) {
    if (boxes[i].crosses_edge()) matches.object[i] = kIgnored;
  }
  if (objects.empty()) return matches;
  const OverlappingBoxes near(objects, boxes, matches);
  for (size_t i = 0; i < near.size(); ++i) {
    double& largest = matches.overlap[near.box(i)];
    for (size_t k = 0; k < objects.size(); ++k) largest = std::max(largest, near.overlap(i, k));
  }
  MatchEachObject(near, objects.size(), &matches);
  if (options.match_type() == MultiBoxLossParameter::BIPARTITE) return matches;
  for (size_t i = 0; i < near.size(); ++i) {
    int& object = matches.object[near.box(i)];
    if (object != kUnmatched) continue;
    double best = 0;
    for (size_t k = 0; k < objects.size(); ++k) {
      const double overlap = near.overlap(i, k);
      if (overlap < options.overlap_threshold() || overlap <= best) continue;
      best = overlap;
      object = static_cast<int>(k);
    }
  }
  return matches;
}

}  // namespace caffe
