// Results of a detector of boxes (Liu et al. 2016, "SSD: Single shot multibox detector").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "caffe/error.hpp"
#include "caffe/export.hpp"
#include "caffe/ops/boxes.hpp"
#include "caffe/ops/op.hpp"
#include "caffe/tensor/tensor_view.hpp"

namespace caffe::ops {

struct Detection {
  int label = 0;
  double score = 0;
  Box box;
};

// Columns of a detection tensor: item, label, score, xmin, ymin, xmax, ymax.
inline constexpr int64_t kDetectionColumns = 7;

// Rows of all items' detections. If there are none, one row per item: its number, then -1s.
CAFFE_EXPORT std::vector<double> DetectionRows(const std::vector<std::vector<Detection>>& items);

// (loc, conf, priors) -> (rows):  the rows of all items, followed by rows of -1. loc has codes for
// (items, priors, 1 or classes, 4), conf scores for (items, priors, classes), priors boxes followed
// by their variances. rows is (1, 1, MostRows(), kDetectionColumns).
struct CAFFE_EXPORT DetectionOutput {
  static constexpr std::string_view kName = "DetectionOutput";
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
  int64_t classes = 1;
  int background = 0;
  bool shares_location = true;  // one box for all classes
  BoxCode code = BoxCode::kCorner;
  bool multiplies = true;  // codes are multiplied by the variances
  double least_score = 0;  // a candidate's score must exceed this
  int top_k = -1;          // candidates kept per class; -1: all
  double overlap = 0.3;    // IoU above which the worse of two boxes is dropped
  double eta = 1;          // see Suppress()
  int keep_top_k = -1;     // detections kept per item; -1: all
  std::string Attributes() const {
    return StrCat(classes, " classes, scores above ", least_score, ", overlaps up to ", overlap);
  }
  int64_t MostRows(int64_t items, int64_t priors) const;
};

// As DetectionOutput, followed by box voting (Gidaris and Komodakis 2015, "Object detection via a
// multi-region and semantic segmentation-aware CNN model"): each box that is kept becomes the mean,
// weighted by score, of the candidates of its class that overlap it by at least `least_overlap`.
struct CAFFE_EXPORT VotedDetectionOutput {
  static constexpr std::string_view kName = "VotedDetectionOutput";
  static constexpr NumericRule kNumericRule = DetectionOutput::kNumericRule;
  DetectionOutput detections;
  double least_overlap = 1;  // IoU in (0, 1]
  std::string Attributes() const {
    return StrCat(detections.Attributes(), ", votes from ", least_overlap);
  }
};

// Computes the parts of Detect() (ops/detect.hpp).
class CAFFE_EXPORT Detector {
 public:
  Detector(const DetectionOutput& op, double least_vote, const TensorView& loc,
           const TensorView& conf, const TensorView& priors)
      : op_(op),
        least_vote_(least_vote),
        loc_(loc),
        conf_(conf),
        priors_(priors),
        count_(priors.count() / 8) {}

  // Appends to found[label] for the labels in [first, last) of an item.
  void Find(int64_t item, int64_t first, int64_t last, std::vector<Detection>* found) const;
  // The best keep_top_k detections of an item, ordered by label.
  std::vector<Detection> Best(std::vector<Detection> of_item) const;

 private:
  Box BoxOf(int64_t item, int64_t prior, int64_t label) const;

  const DetectionOutput& op_;
  const double least_vote_;  // IoU of candidates that vote; 0: no voting
  const TensorView loc_, conf_, priors_;
  const int64_t count_;  // number of priors; their boxes come before their variances
};

}  // namespace caffe::ops
