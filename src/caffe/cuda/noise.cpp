#include "caffe/cuda/noise.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "caffe/tensor/tensor_view.hpp"

namespace caffe::cuda {
namespace {

constexpr int64_t kValues = 1 << 20;
// Standard deviation of 8-bit numbers.
constexpr float kSpread = 40;
// Distance between the start positions of two operands' noise.
constexpr int64_t kStep = 104729;

const std::vector<float>& NormalNoise() {
  static const std::vector<float> noise = [] {
    std::mt19937 generator(1);
    std::normal_distribution<float> normal;
    std::vector<float> values(kValues);
    for (float& value : values) value = normal(generator);
    return values;
  }();
  return noise;
}

// Repeats the first `done` bytes until `bytes` are filled.
void Repeat(Device& device, void* to, size_t done, size_t bytes) {
  while (done > 0 && done < bytes) {
    const size_t more = std::min(done, bytes - done);
    device.compute_stream().Copy(static_cast<char*>(to) + done, to, more);
    done += more;
  }
}

}  // namespace

void FillWithNoise(Device& device, DType type, void* to, size_t bytes, size_t operand,
                   Noise noise) {
  const int64_t count = std::min<int64_t>(kValues, static_cast<int64_t>(bytes / SizeOf(type)));
  std::vector<float> values(NormalNoise());
  std::ranges::rotate(values, values.begin() + static_cast<int64_t>(operand) * kStep % kValues);
  if (noise == Noise::kVariances) {
    for (float& value : values) value = 0.5f + std::abs(value);
  }
  if (Is8Bit(type)) {
    const float lowest = type == DType::kInt8 ? -128 : 0, most = type == DType::kInt8 ? 127 : 255;
    for (float& value : values) value = std::clamp(std::nearbyint(kSpread * value), lowest, most);
  }
  std::vector<char> block(static_cast<size_t>(count) * SizeOf(type));
  TensorView from, converted;
  from.shape = converted.shape = Shape({count});
  from.data = values.data();
  converted.dtype = type;
  converted.data = block.data();
  CopyTensor(from, converted);
  device.CopyFromHost(to, block.data(), block.size());
  Repeat(device, to, block.size(), bytes);
}

void FillWithNaNs(Device& device, void* to, size_t bytes) {
  const std::vector<char> block(std::min(bytes, size_t{1} << 16), static_cast<char>(0xff));
  device.CopyFromHost(to, block.data(), block.size());
  Repeat(device, to, block.size(), bytes);
}

}  // namespace caffe::cuda
