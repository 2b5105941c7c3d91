#include "tests/fuzz/dag/difference.hpp"

#include <algorithm>
#include <cmath>

#include "caffe/error.hpp"

namespace caffe::fuzz {
namespace {

// The distance over the elements that are finite in both.
double Distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (std::isfinite(a[i]) && std::isfinite(b[i])) sum += (a[i] - b[i]) * (a[i] - b[i]);
  }
  return std::sqrt(sum);
}

double Norm(const std::vector<double>& values) {
  return Distance(values, std::vector<double>(values.size()));
}

// Classes and accuracies jump if scores are nearly equal.
bool IsDiscrete(const std::string& key) {
  return key.find(" index") != std::string::npos;
}

// The index of the element with the largest difference.
size_t Farthest(const std::vector<double>& a, const std::vector<double>& b) {
  size_t at = 0;
  double most = -1;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) continue;
    if (const double distance = std::abs(a[i] - b[i]); distance > most) {
      most = distance;
      at = i;
    }
  }
  return at;
}

bool HasNanWhere(const std::vector<double>& a, const std::vector<double>& b) {
  return std::ranges::equal(
      a, b, [](double x, double y) { return std::isfinite(x) == std::isfinite(y); });
}

std::string DescribeShapeOrNan(const std::string& key, const std::vector<double>& expected,
                               const std::vector<double>& values, NanPlaces places) {
  if (expected.size() != values.size())
    return StrCat(key, " has ", values.size(), " elements instead of ", expected.size());
  if (places == NanPlaces::kAny) return "";
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::isfinite(expected[i]) != std::isfinite(values[i]))
      return StrCat(key, "[", i, "] is ", values[i], " instead of ", expected[i]);
  }
  return "";
}

}  // namespace

void Tolerance::Learn(const Numbers& exact, const Numbers& noisy, double noise) {
  for (const auto& [key, values] : noisy) {
    const auto found = exact.find(key);
    if (found == exact.end()) continue;
    if (!HasNanWhere(found->second, values)) undecided_.insert(key);
    double& deviation = deviations_[key];
    deviation = std::max(deviation, Distance(found->second, values) / noise);
  }
}

double Tolerance::Of(const std::string& key, const std::vector<double>& values,
                     const TypePrecision& type) const {
  const auto found = deviations_.find(key);
  const double learned = found == deviations_.end() ? 0 : found->second;
  // The loss is returned as a float. The noise does not include rounding inside a layer: a 0 in
  // double may be a difference of nearly equal numbers around 1.
  const double relative = key.ends_with("loss ") ? std::max(type.relative, 0x1p-23) : type.relative;
  const double elements = std::sqrt(static_cast<double>(values.size()));
  return 4 * type.relative * learned + 8 * relative * Norm(values) +
         elements * (8 * type.smallest + 16 * type.relative);
}

std::string DescribeDifference(const Numbers& expected, const Numbers& numbers,
                               const Tolerance& tolerance, const TypePrecision& type,
                               NanPlaces places, ComparisonCount* count) {
  for (const auto& [key, values] : numbers) {
    const auto found = expected.find(key);
    if (found == expected.end()) continue;
    ++count->arrays;
    const std::string reason = DescribeShapeOrNan(key, found->second, values, places);
    if (!reason.empty()) return reason;
    if (IsDiscrete(key)) continue;
    const double bound = tolerance.Of(key, found->second, type);
    if (bound > 0.5 * Norm(found->second)) ++count->loose;
    const double distance = Distance(found->second, values);
    if (distance <= bound) continue;
    const size_t at = Farthest(found->second, values);
    return StrCat(key, " is ", distance, " away where rounding explains ", bound, " (norm ",
                  Norm(found->second), "); element ", at, " of ", values.size(), " is ", values[at],
                  " instead of ", found->second[at]);
  }
  return "";
}

std::string DescribeHiddenNan(const Numbers& exact, const Numbers& numbers,
                              const Tolerance& tolerance) {
  for (const auto& [key, values] : numbers) {
    const auto found = exact.find(key);
    if (found == exact.end() || tolerance.DecidesNan(key) || IsDiscrete(key)) continue;
    // If weights meet nothing but padding, their gradient is 0, or 0 * NaN.
    const bool shows_nan = !std::ranges::all_of(values, [](double x) { return std::isfinite(x); });
    if (key.find(" diff ") != std::string::npos && shows_nan) continue;
    for (size_t i = 0; i < std::min(values.size(), found->second.size()); ++i) {
      if (std::isnan(found->second[i]) && std::isfinite(values[i]))
        return StrCat(key, "[", i, "] is ", values[i], ", and NaN in double");
    }
  }
  return "";
}

std::string DescribeBitDifference(const Numbers& expected, const Numbers& numbers,
                                  ComparisonCount* count) {
  for (const auto& [key, values] : numbers) {
    const auto found = expected.find(key);
    if (found == expected.end()) continue;
    ++count->arrays;
    const std::string reason = DescribeShapeOrNan(key, found->second, values, NanPlaces::kSame);
    if (!reason.empty()) return reason;
    for (size_t i = 0; i < values.size(); ++i) {
      const double want = found->second[i];
      if (values[i] != want && !(std::isnan(values[i]) && std::isnan(want)))
        return StrCat(key, "[", i, "] is ", values[i], " instead of ", want, ", bit by bit");
    }
  }
  return "";
}

}  // namespace caffe::fuzz
