// How far two runs of a net are apart, and how far rounding may take them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/fuzz/dag/net_run.hpp"

namespace caffe::fuzz {

// What rounding may change: learned from runs of the net in double with noise in each layer.
class Tolerance {
 public:
  // Euclidean distance of the two for a relative noise of 1, the largest of all runs.
  void Learn(const Numbers& exact, const Numbers& noisy, double noise);

  // The distance that rounding to this type explains.
  double Of(const std::string& key, const std::vector<double>& values,
            const TypePrecision& type) const;

 private:
  std::map<std::string, double> deviations_;
};

// What was compared.
struct ComparisonCount {
  int arrays = 0;
  int loose = 0;  // where rounding explains a difference of half the array's norm
};

// Where NaN and infinity have to be. Kernels for another type may multiply what others leave out:
// zeros of the padding, or of a vector's unused elements.
enum class NanPlaces { kSame, kSameArrays };

// What tells `numbers` apart from `expected`; empty where nothing does. Arrays that only one of
// them has are left out.
std::string DescribeDifference(const Numbers& expected, const Numbers& numbers,
                               const Tolerance& tolerance, const TypePrecision& type,
                               NanPlaces places, ComparisonCount* count);

// The same for bits.
std::string DescribeBitDifference(const Numbers& expected, const Numbers& numbers,
                                  ComparisonCount* count);

}  // namespace caffe::fuzz
