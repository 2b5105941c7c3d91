#include "caffe/ops/detections.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace caffe::ops {
namespace {

// Reads elements of a plain operand, which must outlive this.
class Elements {
 public:
  explicit Elements(const TensorView& view) : view_(view) {
    CAFFE_ASSERT(view.layout == Layout::kPlain);
  }
  double operator[](int64_t i) const {
    return VisitFloat(view_.dtype, [&]<typename T>(TypeTag<T>) {
      return static_cast<double>(view_.as<const T>()[i]);
    });
  }
  // Elements 4 * index to 4 * index + 3.
  std::array<double, 4> Four(int64_t index) const {
    return {(*this)[4 * index], (*this)[4 * index + 1], (*this)[4 * index + 2],
            (*this)[4 * index + 3]};
  }

 private:
  const TensorView& view_;
};

// The candidates of a class, in the order of their indexes. Those that cannot be among the best are
// dropped on the way, so that hundreds are stored and not thousands.
struct Candidates {
  std::vector<ScoredBox> boxes;
  double least = 0;  // a candidate's score must exceed this

  void Clear(double least_score) {
    boxes.clear();
    least = least_score;
  }
  void Add(const ScoredBox& candidate, int top_k) {
    boxes.push_back(candidate);
    if (top_k <= 0 || boxes.size() < 2 * static_cast<size_t>(top_k)) return;
    SelectBest(&boxes, top_k);
    // An equal score that follows is worse, because its index is higher.
    least = boxes.back().score;
  }
};

}  // namespace

void Detector::Find(int64_t item, int64_t first, int64_t last,
                    std::vector<Detection>* found) const {
  // Reused in later calls: allocating the memory takes as long as the rest.
  static thread_local std::vector<Candidates> candidates;
  static thread_local std::vector<Box> boxes;
  const size_t labels = static_cast<size_t>(last - first);
  candidates.resize(std::max(candidates.size(), labels));
  for (int64_t label = first; label < last; ++label) {
    constexpr double kNone = std::numeric_limits<double>::infinity();
    candidates[label - first].Clear(label == op_.background ? kNone : op_.least_score);
  }
  boxes.resize(count_);
  CAFFE_ASSERT(conf_.layout == Layout::kPlain);
  VisitFloat(conf_.dtype, [&]<typename T>(TypeTag<T>) {
    // In the order of memory: prior by prior.
    for (int64_t prior = 0; prior < count_; ++prior) {
      const T* scores = conf_.as<const T>() + (item * count_ + prior) * op_.classes + first;
      for (size_t i = 0; i < labels; ++i) {
        const double score = static_cast<double>(scores[i]);
        if (score > candidates[i].least) candidates[i].Add({score, prior}, op_.top_k);
      }
    }
  });
  for (int64_t label = first; label < last; ++label) {
    std::vector<ScoredBox>& best = candidates[label - first].boxes;
    KeepBest(&best, op_.top_k);
    for (const ScoredBox& candidate : best)
      boxes[candidate.index] = BoxOf(item, candidate.index, label);
    for (const ScoredBox& kept : Suppress(best, boxes, op_.overlap, op_.eta))
      found[label].push_back({static_cast<int>(label), kept.score,
                              least_vote_ > 0 ? Vote(best, boxes, boxes[kept.index], least_vote_)
                                              : boxes[kept.index]});
  }
}

Box Detector::BoxOf(int64_t item, int64_t prior, int64_t label) const {
  const Elements loc(loc_), priors(priors_);
  const int64_t locations = op_.shares_location ? 1 : op_.classes;
  const int64_t place = (item * count_ + prior) * locations + (op_.shares_location ? 0 : label);
  const auto [xmin, ymin, xmax, ymax] = priors.Four(prior);
  return Decode(loc.Four(place), {xmin, ymin, xmax, ymax}, priors.Four(count_ + prior), op_.code,
                op_.multiplies);
}

std::vector<Detection> Detector::Best(std::vector<Detection> of_item) const {
  const int keep = op_.keep_top_k;
  if (keep < 0 || static_cast<size_t>(keep) >= of_item.size()) return of_item;
  std::stable_sort(of_item.begin(), of_item.end(),
                   [](const Detection& a, const Detection& b) { return a.score > b.score; });
  of_item.resize(keep);
  std::stable_sort(of_item.begin(), of_item.end(),
                   [](const Detection& a, const Detection& b) { return a.label < b.label; });
  return of_item;
}

std::vector<double> DetectionRows(const std::vector<std::vector<Detection>>& items) {
  std::vector<double> rows;
  for (size_t item = 0; item < items.size(); ++item) {
    for (const auto& [label, score, box] : items[item]) {
      rows.insert(rows.end(), {static_cast<double>(item), static_cast<double>(label), score,
                               box.xmin, box.ymin, box.xmax, box.ymax});
    }
  }
  if (rows.empty()) {
    for (size_t item = 0; item < items.size(); ++item) {
      rows.push_back(static_cast<double>(item));
      rows.insert(rows.end(), kDetectionColumns - 1, -1.0);
    }
  }
  return rows;
}

int64_t DetectionOutput::MostRows(int64_t items, int64_t priors) const {
  const bool has_background = background >= 0 && background < classes;
  const int64_t of_class = top_k < 0 ? priors : std::min<int64_t>(priors, top_k);
  const int64_t of_item = of_class * (classes - has_background);
  const int64_t kept = keep_top_k < 0 ? of_item : std::min<int64_t>(of_item, keep_top_k);
  return items * std::max<int64_t>(kept, 1);
}

}  // namespace caffe::ops
