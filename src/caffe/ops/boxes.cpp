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
  for (const ScoredBox& candidate : candidates) {
    if (most >= 0 && kept.size() >= static_cast<size_t>(most)) break;
    const bool stays = std::all_of(kept.begin(), kept.end(), [&](const ScoredBox& better) {
      return Overlap(boxes[candidate.index], boxes[better.index]) <= threshold;
    });
    if (!stays) continue;
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
  return std::isnan(score) ? -std::numeric_limits<double>::infinity() : score;
}

void KeepBest(std::vector<ScoredBox>* candidates, int top_k) {
  const auto is_better = [](const ScoredBox& a, const ScoredBox& b) {
    const double rank_of_a = ScoreRank(a.score), rank_of_b = ScoreRank(b.score);
    return rank_of_a != rank_of_b ? rank_of_a > rank_of_b : a.index < b.index;
  };
  if (top_k >= 0 && static_cast<size_t>(top_k) < candidates->size()) {
    std::nth_element(candidates->begin(), candidates->begin() + top_k, candidates->end(),
                     is_better);
    candidates->resize(top_k);
  }
  std::sort(candidates->begin(), candidates->end(), is_better);
}

}  // namespace caffe::ops
