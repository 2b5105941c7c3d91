#include "caffe/cuda/samples.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "caffe/tensor/tensor_view.hpp"

namespace caffe::cuda {
namespace {

// Limit for algorithms of one problem: some round to fewer bits internally. An algorithm that omits
// a part, or adds data found in memory, differs more.
constexpr double kMostDifference = 1.0 / 32;

bool HasOnlyNumbers(const Results& results) {
  return std::ranges::all_of(results, [](const Sample& sample) {
    return std::ranges::all_of(sample, [](double value) { return std::isfinite(value); });
  });
}

// Sets elements to zero that are NaN in all results.
void ForgetUnwritten(std::vector<std::optional<Results>>* all) {
  std::vector<std::vector<bool>> written;
  for (const std::optional<Results>& one : *all) {
    if (!one) continue;
    written.resize(one->size());
    for (size_t i = 0; i < one->size(); ++i) {
      const Sample& sample = (*one)[i];
      written[i].resize(sample.size());
      for (size_t k = 0; k < sample.size(); ++k)
        if (std::isfinite(sample[k])) written[i][k] = true;
    }
  }
  for (std::optional<Results>& one : *all) {
    for (size_t i = 0; one && i < one->size(); ++i) {
      for (size_t k = 0; k < (*one)[i].size(); ++k)
        if (!written[i][k]) (*one)[i][k] = 0;
    }
  }
}

// The norm of the difference divided by that of the second sample.
double Difference(const Sample& one, const Sample& other) {
  double difference = 0, norm = std::numeric_limits<double>::min();
  for (size_t i = 0; i < one.size(); ++i) {
    difference += (one[i] - other[i]) * (one[i] - other[i]);
    norm += other[i] * other[i];
  }
  return std::sqrt(difference / norm);
}

}  // namespace

Sample SampleOf(Device& device, DType type, const void* data, int64_t count, int64_t stretches,
                int64_t length) {
  const size_t size = SizeOf(type);
  Sample sample;
  std::vector<char> bytes;
  const bool is_whole = count <= stretches * length;
  const int64_t elements = is_whole ? count : length;
  for (int64_t i = 0; i < (is_whole ? 1 : stretches) && count > 0; ++i) {
    const int64_t begin = is_whole ? 0 : (count - length) * i / (stretches - 1);
    bytes.resize(static_cast<size_t>(elements) * size);
    device.CopyToHost(bytes.data(),
                      static_cast<const char*>(data) + static_cast<size_t>(begin) * size,
                      bytes.size());
    sample.resize(sample.size() + static_cast<size_t>(elements));
    TensorView from, to;
    from.shape = to.shape = Shape({elements});
    from.dtype = type;
    from.data = bytes.data();
    to.dtype = DType::kDouble;
    to.data = sample.data() + sample.size() - elements;
    CopyTensor(from, to);
  }
  return sample;
}

double LargestDifference(const Results& one, const Results& other) {
  double largest = 0;
  for (size_t i = 0; i < one.size(); ++i) {
    const double difference = Difference(one[i], other[i]);
    if (!(difference <= largest)) largest = difference;
    if (std::isnan(largest)) break;
  }
  return largest;
}

std::vector<bool> Agreeing(std::vector<std::optional<Results>> all) {
  ForgetUnwritten(&all);
  std::vector<bool> best(all.size(), false);
  int64_t most = 0;
  for (const std::optional<Results>& one : all) {
    if (!one || !HasOnlyNumbers(*one)) continue;
    std::vector<bool> agrees;
    for (const std::optional<Results>& other : all)
      agrees.push_back(other && LargestDifference(*other, *one) <= kMostDifference);
    const int64_t count = std::ranges::count(agrees, true);
    if (count > most) most = count, best = std::move(agrees);
  }
  if (most > 0) return best;
  for (size_t i = 0; i < all.size(); ++i) best[i] = all[i].has_value();
  return best;
}

}  // namespace caffe::cuda
