#include "caffe/layers/prefix_beams.hpp"

#include <algorithm>

#include "caffe/layers/log_sum.hpp"

namespace caffe {

double PrefixBeams::Beam::total() const {
  return LogAdd(with_blank, without_blank);
}

PrefixBeams::PrefixBeams(int64_t width, int blank, bool merges)
    : width_(static_cast<size_t>(width)),
      blank_(blank),
      merges_(merges),
      prefixes_(1),
      beams_{{.prefix = 0, .with_blank = 0, .without_blank = kLogZero}} {}

std::vector<int> PrefixBeams::LabelsOf(int prefix) const {
  std::vector<int> labels;
  for (; prefix > 0; prefix = prefixes_[prefix].before) labels.push_back(prefixes_[prefix].label);
  std::ranges::reverse(labels);
  return labels;
}

std::vector<int> PrefixBeams::LabelsOf(const Candidate& candidate) const {
  if (candidate.label < 0) return LabelsOf(candidate.beam.prefix);
  std::vector<int> labels = LabelsOf(candidate.before);
  labels.push_back(candidate.label);
  return labels;
}

bool PrefixBeams::IsBetter(const Candidate& a, const Candidate& b) const {
  const double of_a = a.beam.total(), of_b = b.beam.total();
  return of_a != of_b ? of_a > of_b : LabelsOf(a) < LabelsOf(b);
}

std::vector<PrefixBeams::Candidate> PrefixBeams::NextCandidates(
    std::span<const double> log_y) const {
  // A prefix that gets a label may be that of another beam.
  std::map<std::pair<int, int>, size_t> beam_at;
  for (size_t i = 0; i < beams_.size(); ++i) {
    const Prefix& prefix = prefixes_[beams_[i].prefix];
    if (beams_[i].prefix > 0) beam_at[{prefix.before, prefix.label}] = i;
  }
  std::vector<Candidate> candidates;
  for (const Beam& beam : beams_) {
    const int last = prefixes_[beam.prefix].label;
    const double repeated = merges_ && last >= 0 ? beam.without_blank + log_y[last] : kLogZero;
    candidates.push_back({.beam = {beam.prefix, beam.total() + log_y[blank_], repeated}});
  }
  const size_t kept = candidates.size();
  for (size_t i = 0; i < kept; ++i) {
    const Beam& beam = beams_[i];
    const int last = prefixes_[beam.prefix].label;
    for (int label = 0; label < static_cast<int>(log_y.size()); ++label) {
      if (label == blank_) continue;
      const bool needs_blank = merges_ && label == last;
      const double added = (needs_blank ? beam.with_blank : beam.total()) + log_y[label];
      if (added == kLogZero) continue;
      const auto found = beam_at.find({beam.prefix, label});
      if (found == beam_at.end()) {
        candidates.push_back({{-1, kLogZero, added}, beam.prefix, label});
      } else {
        double& of_other = candidates[found->second].beam.without_blank;
        of_other = LogAdd(of_other, added);
      }
    }
  }
  return candidates;
}

void PrefixBeams::Advance(std::span<const double> log_y) {
  std::vector<Candidate> candidates = NextCandidates(log_y);
  const size_t count = std::min(width_, candidates.size());
  std::partial_sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(count),
                    candidates.end(),
                    [&](const Candidate& a, const Candidate& b) { return IsBetter(a, b); });
  beams_.clear();
  for (size_t i = 0; i < count; ++i) {
    Candidate& one = candidates[i];
    if (one.label >= 0) {
      const int next = static_cast<int>(prefixes_.size());
      const auto [known, is_new] = numbers_.try_emplace({one.before, one.label}, next);
      if (is_new) prefixes_.push_back({one.before, one.label});
      one.beam.prefix = known->second;
    }
    beams_.push_back(one.beam);
  }
}

}  // namespace caffe
