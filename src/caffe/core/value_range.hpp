// Smallest, mean and largest of many numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace caffe {

struct ValueRange {
  float smallest = 0, mean = 0, largest = 0;
};

// All three are NaN if a value is. `values` must not be empty.
inline ValueRange RangeOf(const std::vector<float>& values) {
  const auto nan =
      std::find_if(values.begin(), values.end(), [](float x) { return std::isnan(x); });
  if (nan != values.end()) return {*nan, *nan, *nan};
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {*least, static_cast<float>(sum / static_cast<double>(values.size())), *most};
}

// Logs have a line per value of an output, or one line with the range of one of more values, such
// as a map of scores.
constexpr size_t kMostLinesOfValues = 1000;

// "-1.5 to 2, mean 0.25 (4800 values)"
inline std::string TextOfRange(const std::vector<float>& values) {
  const ValueRange range = RangeOf(values);
  std::ostringstream text;
  text << range.smallest << " to " << range.largest << ", mean " << range.mean << " ("
       << values.size() << " values)";
  return std::move(text).str();
}

}  // namespace caffe
