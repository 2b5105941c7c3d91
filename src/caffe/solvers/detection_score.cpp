#include "caffe/detection_score.hpp"

#include <algorithm>
#include <cmath>

#include "caffe/error.hpp"
#include "caffe/ops/boxes.hpp"

namespace caffe {
namespace {

constexpr int kColumns = 5;

// Precision and recall after each detection, best score first.
struct Point {
  double precision, recall;
};

double ElevenPoint(const std::vector<Point>& curve) {
  double sum = 0;
  for (int tenth = 0; tenth <= 10; ++tenth) {
    double best = 0;
    for (const Point& point : curve) {
      if (point.recall >= tenth / 10.0) best = std::max(best, point.precision);
    }
    sum += best;
  }
  return sum / 11;
}

double Area(std::vector<Point> curve, bool is_envelope) {
  for (size_t i = curve.size(); is_envelope && i-- > 1;) {
    curve[i - 1].precision = std::max(curve[i - 1].precision, curve[i].precision);
  }
  double sum = 0, recall = 0;
  for (const Point& point : curve) {
    sum += point.precision * (point.recall - recall);
    recall = point.recall;
  }
  return sum;
}

}  // namespace

DetectionScore::DetectionScore(const std::string& ap_version) : ap_version_(ap_version) {
  Require(ap_version == "11point" || ap_version == "MaxIntegral" || ap_version == "Integral",
          "ap_version is '", ap_version, "'; use 11point, MaxIntegral or Integral");
}

void DetectionScore::Add(const Blob& rows) {
  const Shape& shape = rows.shape();
  Require(shape.num_axes() > 0 && shape[-1] == kColumns, "an output of shape ", shape,
          ", where detection tests expect rows of 5; let a DetectionEvaluate layer be the net's "
          "only output");
  const float* row = rows.cpu_data();
  for (int64_t i = 0; i < rows.count(); i += kColumns, row += kColumns) {
    Class& one = classes_[static_cast<int>(row[1])];
    if (row[0] == -1) {
      one.objects += row[2];
    } else if (row[3] != 0 || row[4] != 0) {  // otherwise it found a difficult object
      one.detections.push_back({row[2], row[3] != 0 && !std::isnan(row[2])});
    }
  }
}

double DetectionScore::AveragePrecision(const Class& one) const {
  if (one.objects == 0) return 0;
  std::vector<Detection> detections = one.detections;
  std::stable_sort(detections.begin(), detections.end(),
                   [](const Detection& a, const Detection& b) {
                     return ops::ScoreRank(a.score) > ops::ScoreRank(b.score);
                   });
  std::vector<Point> curve;
  double found = 0;
  for (const Detection& detection : detections) {
    found += detection.is_true ? 1 : 0;
    curve.push_back({found / static_cast<double>(curve.size() + 1), found / one.objects});
  }
  if (ap_version_ == "11point") return ElevenPoint(curve);
  return Area(curve, /*is_envelope=*/ap_version_ == "MaxIntegral");
}

std::vector<std::pair<int, double>> DetectionScore::AveragePrecisions() const {
  std::vector<std::pair<int, double>> all;
  for (const auto& [label, one] : classes_) all.emplace_back(label, AveragePrecision(one));
  return all;
}

double DetectionScore::MeanAveragePrecision() const {
  double sum = 0;
  for (const auto& [label, precision] : AveragePrecisions()) sum += precision;
  return classes_.empty() ? 0 : sum / static_cast<double>(classes_.size());
}

}  // namespace caffe
