// How far two runs of a net are apart, and how far rounding may take them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/fuzz/dag/net_run.hpp"

namespace caffe::fuzz {

// What rounding may change: learned from runs of the net in double with noise in each layer.
class Tolerance {
 public:
  // Euclidean distance of the two for a relative noise of 1, the largest of all runs.
  void Learn(const Numbers& exact, const Numbers& noisy, double noise);

  // Whether rounding decides where this array has NaN: 0 / 0 where noise makes no 0.
  bool DecidesNan(const std::string& key) const { return undecided_.count(key) > 0; }

  // The distance that rounding to this type explains.
  double Of(const std::string& key, const std::vector<double>& values,
            const TypePrecision& type) const;

 private:
  std::map<std::string, double> deviations_;
  std::set<std::string> undecided_;
};

// What was compared.
struct ComparisonCount {
  int arrays = 0;
  int loose = 0;  // where rounding explains a difference of half the array's norm
};

// Where NaN and infinity have to be. kAny: elements that are finite in both are compared.
enum class NanPlaces { kSame, kAny };

// What tells `numbers` apart from `expected`; empty where nothing does. Arrays that only one of
// them has are left out.
std::string DescribeDifference(const Numbers& expected, const Numbers& numbers,
                               const Tolerance& tolerance, const TypePrecision& type,
                               NanPlaces places, ComparisonCount* count);

// An element that is NaN in `exact` and a number in `numbers`; in a gradient, only where all are
// numbers.
std::string DescribeHiddenNan(const Numbers& exact, const Numbers& numbers,
                              const Tolerance& tolerance);

// The same as DescribeDifference() for bits.
std::string DescribeBitDifference(const Numbers& expected, const Numbers& numbers,
                                  ComparisonCount* count);

}  // namespace caffe::fuzz
