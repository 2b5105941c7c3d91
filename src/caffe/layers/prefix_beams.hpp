// Prefix beam search for CTC (Hannun 2014, "Prefix search decoding"; Graves 2012).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace caffe {

// Finds the labels whose paths together are the likeliest, keeping `width` prefixes at each time
// step. Of equally likely prefixes the one that comes first in lexicographic order is kept.
//
//   PrefixBeams beams(16, blank, /*merges=*/true);
//   for (each time step) beams.Advance(log_probabilities);
//   beams.Labels(), beams.LogProbability()
class PrefixBeams {
 public:
  // `merges`: equal labels that follow each other without a blank are one label.
  PrefixBeams(int64_t width, int blank, bool merges);

  // One logarithm of a probability for each class.
  void Advance(std::span<const double> log_y);

  // The best prefix and the sum of the paths to it that were followed.
  std::vector<int> Labels() const { return LabelsOf(beams_.front().prefix); }
  double LogProbability() const { return beams_.front().total(); }

 private:
  // A prefix is its last label after another prefix; prefix 0 is empty.
  struct Prefix {
    int before = -1, label = -1;
  };
  // Probabilities of the paths to a prefix that end with the blank, and of the others.
  struct Beam {
    int prefix = 0;
    double with_blank, without_blank;

    double total() const;
  };
  // A prefix of the next step: a beam's, or a new one, which has a label more than `before`.
  struct Candidate {
    Beam beam;
    int before = -1, label = -1;
  };

  std::vector<int> LabelsOf(int prefix) const;
  std::vector<int> LabelsOf(const Candidate& candidate) const;
  bool IsBetter(const Candidate& a, const Candidate& b) const;
  std::vector<Candidate> NextCandidates(std::span<const double> log_y) const;

  const size_t width_;
  const int blank_;
  const bool merges_;
  std::vector<Prefix> prefixes_;
  std::map<std::pair<int, int>, int> numbers_;  // prefix before and label -> prefix
  std::vector<Beam> beams_;                     // the best first
};

}  // namespace caffe
