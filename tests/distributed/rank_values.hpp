// Values that tests of communicators reduce.
#pragma once

#include <random>
#include <vector>

#include "caffe/device/device.hpp"
#include "caffe/tensor/tensor_view.hpp"

namespace caffe::testing {

template <typename T>
TensorView ViewOf(std::vector<T>& values) {
  return {{Shape{static_cast<int64_t>(values.size())}, kDTypeOf<T>}, values.data()};
}

// The event of memory that is already filled.
inline Event& Filled() {
  static const std::unique_ptr<Event> event = MakeDevice(DeviceKind::kCpu)->MakeEvent();
  return *event;
}

// Random values for each rank.
template <typename T>
std::vector<std::vector<T>> RandomValues(int ranks, size_t count) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<std::vector<T>> values(ranks, std::vector<T>(count));
  for (auto& row : values) {
    for (T& value : row) value = T(normal(random));
  }
  return values;
}

}  // namespace caffe::testing
