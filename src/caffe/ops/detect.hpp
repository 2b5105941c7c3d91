// Runs a detector in OpenMP threads; only for translation units that are compiled with OpenMP.
#pragma once

#include <algorithm>
#include <vector>

#include "caffe/core/parallel_for.hpp"
#include "caffe/ops/detections.hpp"

namespace caffe::ops {

// Returns the detections of `op` in each item, voted for by boxes that overlap them by least_vote,
// unless that is 0.
inline std::vector<std::vector<Detection>> Detect(const DetectionOutput& op, double least_vote,
                                                  const TensorView& loc, const TensorView& conf,
                                                  const TensorView& priors) {
  const Detector detector(op, least_vote, loc, conf, priors);
  const int64_t items = loc.shape[0], classes = op.classes;
  // By item and label, so that there is work for all threads even with a single item.
  std::vector<std::vector<Detection>> found(items * classes);
  ParallelFor(items * classes, 1, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t item = begin / classes, last = std::min(end, (item + 1) * classes);
      detector.Find(item, begin - item * classes, last - item * classes, &found[item * classes]);
      begin = last;
    }
  });
  std::vector<std::vector<Detection>> detections;
  for (int64_t item = 0; item < items; ++item) {
    std::vector<Detection> all;
    for (int64_t label = 0; label < classes; ++label) {
      const std::vector<Detection>& of_label = found[item * classes + label];
      all.insert(all.end(), of_label.begin(), of_label.end());
    }
    detections.push_back(detector.Best(std::move(all)));
  }
  return detections;
}

}  // namespace caffe::ops
