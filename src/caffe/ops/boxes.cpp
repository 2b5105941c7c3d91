#include "caffe/ops/boxes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace caffe::ops {
namespace {

struct Center {
  double x, y, width, height;
  explicit Center(const Box& box)
      : x((box.xmin + box.xmax) / 2),
        y((box.ymin + box.ymax) / 2),
        width(box.width()),
        height(box.height()) {}
};

double RankOf(double score) {
  return std::isnan(score) ? -std::numeric_limits<double>::infinity() : score;
}

bool IsBetter(const ScoredBox& a, const ScoredBox& b) {
  const double rank_of_a = RankOf(a.score), rank_of_b = RankOf(b.score);
  return rank_of_a != rank_of_b ? rank_of_a > rank_of_b : a.index < b.index;
}

// Boxes that suppress others, edge by edge, so that several are compared at once.
class KeptBoxes {
 public:
  void Add(const Box& box) {
    if (size_ % kAtOnce == 0) {
      // Boxes without area overlap nothing.
      for (std::vector<double>* one : {&xmin_, &ymin_, &xmax_, &ymax_, &area_})
        one->resize(size_ + kAtOnce, 0);
    }
    xmin_[size_] = box.xmin;
    ymin_[size_] = box.ymin;
    xmax_[size_] = box.xmax;
    ymax_[size_] = box.ymax;
    area_[size_++] = box.area();
  }

  // True if the box overlaps one of these by more than the threshold, or an overlap is NaN.
  bool Suppress(const Box& box, double threshold) const {
    for (size_t begin = 0; begin < size_; begin += kAtOnce)
      if (SuppressFrom(begin, box, box.area(), threshold)) return true;
    return false;
  }

 private:
  static constexpr size_t kAtOnce = 8;

  // Overlap(), written so that compilers compute it for several boxes at once.
  bool SuppressFrom(size_t begin, const Box& box, double area, double threshold) const {
    int found = 0;
    for (size_t i = begin; i < begin + kAtOnce; ++i) {
      const double width = std::min(box.xmax, xmax_[i]) - std::max(box.xmin, xmin_[i]);
      const double height = std::min(box.ymax, ymax_[i]) - std::max(box.ymin, ymin_[i]);
      const double product = width * height;
      const double common = (width <= 0) | (height <= 0) ? 0 : product;
      const double ratio = common / (area + area_[i] - common);
      found |= !((common <= 0 ? 0 : ratio) <= threshold);
    }
    return found != 0;
  }

  std::vector<double> xmin_, ymin_, xmax_, ymax_, area_;
  size_t size_ = 0;
};

}  // namespace

Box Box::Clipped() const {
  const auto limit = [](double x) { return std::clamp(x, 0.0, 1.0); };
  return {limit(xmin), limit(ymin), limit(xmax), limit(ymax)};
}

BoxCodes Encode(const Box& box, const Box& prior, const BoxCodes& variances, BoxCode code,
                bool divides) {
  BoxCodes codes{};
  switch (code) {
    case BoxCode::kCorner:
      codes = {box.xmin - prior.xmin, box.ymin - prior.ymin, box.xmax - prior.xmax,
               box.ymax - prior.ymax};
      break;
    case BoxCode::kCenterSize: {
      const Center of(box), from(prior);
      codes = {(of.x - from.x) / from.width, (of.y - from.y) / from.height,
               std::log(of.width / from.width), std::log(of.height / from.height)};
      break;
    }
    case BoxCode::kCornerSize:
      codes = {(box.xmin - prior.xmin) / prior.width(), (box.ymin - prior.ymin) / prior.height(),
               (box.xmax - prior.xmax) / prior.width(), (box.ymax - prior.ymax) / prior.height()};
      break;
  }
  for (int i = 0; divides && i < 4; ++i) codes[i] /= variances[i];
  return codes;
}

Box Decode(const BoxCodes& codes, const Box& prior, const BoxCodes& variances, BoxCode code,
           bool multiplies) {
  BoxCodes c = codes;
  for (int i = 0; multiplies && i < 4; ++i) c[i] *= variances[i];
  switch (code) {
    case BoxCode::kCorner:
      return {prior.xmin + c[0], prior.ymin + c[1], prior.xmax + c[2], prior.ymax + c[3]};
    case BoxCode::kCenterSize: {
      const Center from(prior);
      const double x = from.x + c[0] * from.width, y = from.y + c[1] * from.height;
      const double width = std::exp(c[2]) * from.width, height = std::exp(c[3]) * from.height;
      return {x - width / 2, y - height / 2, x + width / 2, y + height / 2};
    }
    case BoxCode::kCornerSize:
      break;
  }
  return {prior.xmin + c[0] * prior.width(), prior.ymin + c[1] * prior.height(),
          prior.xmax + c[2] * prior.width(), prior.ymax + c[3] * prior.height()};
}

std::vector<ScoredBox> Suppress(const std::vector<ScoredBox>& candidates,
                                const std::vector<Box>& boxes, double threshold, double eta) {
  return Suppress(candidates, boxes, threshold, eta, -1);
}

std::vector<ScoredBox> Suppress(const std::vector<ScoredBox>& candidates,
                                const std::vector<Box>& boxes, double threshold, double eta,
                                int most) {
  std::vector<ScoredBox> kept;
  KeptBoxes better;
  for (const ScoredBox& candidate : candidates) {
    if (most >= 0 && kept.size() >= static_cast<size_t>(most)) break;
    const Box& box = boxes[candidate.index];
    if (better.Suppress(box, threshold)) continue;
    better.Add(box);
    kept.push_back(candidate);
    if (eta < 1 && threshold > 0.5) threshold *= eta;
  }
  return kept;
}

Box Vote(const std::vector<ScoredBox>& candidates, const std::vector<Box>& boxes, const Box& box,
         double least_overlap) {
  Box sum;
  double weights = 0;
  for (const ScoredBox& candidate : candidates) {
    const Box& voter = boxes[candidate.index];
    if (!(candidate.score > 0) || !(Overlap(voter, box) >= least_overlap)) continue;
    weights += candidate.score;
    sum.xmin += candidate.score * voter.xmin;
    sum.ymin += candidate.score * voter.ymin;
    sum.xmax += candidate.score * voter.xmax;
    sum.ymax += candidate.score * voter.ymax;
  }
  if (weights == 0 || !std::isfinite(weights)) return box;
  return {sum.xmin / weights, sum.ymin / weights, sum.xmax / weights, sum.ymax / weights};
}

double ScoreRank(double score) {
  return RankOf(score);
}

void SelectBest(std::vector<ScoredBox>* candidates, int top_k) {
  if (top_k < 0 || static_cast<size_t>(top_k) >= candidates->size()) return;
  if (top_k > 0) {
    std::nth_element(candidates->begin(), candidates->begin() + top_k - 1, candidates->end(),
                     IsBetter);
  }
  candidates->resize(top_k);
}

void KeepBest(std::vector<ScoredBox>* candidates, int top_k) {
  SelectBest(candidates, top_k);
  std::sort(candidates->begin(), candidates->end(), IsBetter);
}

}  // namespace caffe::ops
