// How different two runs of a net are, and which differences rounding explains.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/fuzz/dag/net_run.hpp"

namespace caffe::fuzz {

// Changes that rounding may cause: learned from runs of the net in double with noise in each layer.
class Tolerance {
 public:
  // Stores the Euclidean distance of the two for a relative noise of 1; the maximum over all runs.
  void Learn(const Numbers& exact, const Numbers& noisy, double noise);

  // Returns whether rounding decides where this array has NaN: 0 / 0, if noise makes it not 0.
  bool DecidesNan(const std::string& key) const { return undecided_.count(key) > 0; }

  // The distance that rounding to this type explains.
  double Of(const std::string& key, const std::vector<double>& values,
            const TypePrecision& type) const;

 private:
  std::map<std::string, double> deviations_;
  std::set<std::string> undecided_;
};

// Counts of comparisons.
struct ComparisonCount {
  int arrays = 0;
  int loose = 0;  // rounding would explain a difference of half the array's norm
};

// Where NaN and infinity must be. With kAny, only elements that are finite in both are compared.
enum class NanPlaces { kSame, kAny };

// Describes how `numbers` differs from `expected`; empty if it does not. Arrays that only one of
// them has are ignored.
std::string DescribeDifference(const Numbers& expected, const Numbers& numbers,
                               const Tolerance& tolerance, const TypePrecision& type,
                               NanPlaces places, ComparisonCount* count);

// Describes an element that is NaN in `exact` and a number in `numbers`; for a gradient, only if
// all its elements are numbers.
std::string DescribeHiddenNan(const Numbers& exact, const Numbers& numbers,
                              const Tolerance& tolerance);

// Like DescribeDifference(), but compares bits.
std::string DescribeBitDifference(const Numbers& expected, const Numbers& numbers,
                                  ComparisonCount* count);

}  // namespace caffe::fuzz
