// DetectionScore: mean average precision of a detector over a test set.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/export.hpp"

namespace caffe {

// Collects the rows of DetectionEvaluate layers over any number of batches: (-1, class, objects,
// -1, -1) and (item, class, score, true positive, false positive).
class CAFFE_EXPORT DetectionScore {
 public:
  // `ap_version`:
  //   11point      mean of the largest precision at recall >= 0, 0.1, ..., 1 (VOC 2007; Everingham
  //                et al. 2010)
  //   MaxIntegral  area below the largest precision at any higher recall (VOC 2012)
  //   Integral     area below the precision itself
  // Throws InvalidArgument for any other value.
  explicit DetectionScore(const std::string& ap_version);

  // Throws InvalidArgument if the blob's rows do not have 5 numbers.
  void Add(const Blob& rows);

  // Average precision of each class that appeared in a row; 0 for classes without detections.
  std::vector<std::pair<int, double>> AveragePrecisions() const;
  // Mean over the classes; 0 if there are none.
  double MeanAveragePrecision() const;

 private:
  struct Detection {
    float score;
    bool is_true;
  };
  struct Class {
    double objects = 0;
    std::vector<Detection> detections;
  };

  double AveragePrecision(const Class& one) const;

  std::string ap_version_;
  std::map<int, Class> classes_;
};

}  // namespace caffe
