#include "caffe/cuda/samples.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "caffe/tensor/tensor_view.hpp"

namespace caffe::cuda {
namespace {

// Of algorithms for one problem: some round to fewer bits on the way. One that misses a part, or
// adds what it found in memory, is further off.
constexpr double kMostDifference = 1.0 / 32;

bool HasOnlyNumbers(const Sample& sample) {
  return std::ranges::all_of(sample, [](double value) { return std::isfinite(value); });
}

}  // namespace

Sample SampleOf(Device& device, DType type, const void* data, int64_t count, int64_t stretches,
                int64_t length) {
  const size_t size = SizeOf(type);
  Sample sample;
  std::vector<char> bytes;
  for (int64_t i = 0; i < stretches; ++i) {
    const int64_t begin = count * i / stretches;
    const int64_t elements = std::min(length, count * (i + 1) / stretches - begin);
    if (elements == 0) continue;
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

double Difference(const Sample& one, const Sample& other) {
  double difference = 0, norm = std::numeric_limits<double>::min();
  for (size_t i = 0; i < one.size(); ++i) {
    difference += (one[i] - other[i]) * (one[i] - other[i]);
    norm += other[i] * other[i];
  }
  return std::sqrt(difference / norm);
}

std::vector<bool> Agreeing(std::span<const std::optional<Sample>> samples) {
  std::vector<bool> all, best(samples.size(), false);
  size_t most = 0;
  for (const std::optional<Sample>& one : samples) {
    all.push_back(one.has_value());
    if (!one || !HasOnlyNumbers(*one)) continue;
    std::vector<bool> agrees;
    for (const std::optional<Sample>& other : samples)
      agrees.push_back(other && Difference(*other, *one) <= kMostDifference);
    const auto count = static_cast<size_t>(std::ranges::count(agrees, true));
    if (count > most) most = count, best = std::move(agrees);
  }
  return most == 0 ? all : best;
}

}  // namespace caffe::cuda
