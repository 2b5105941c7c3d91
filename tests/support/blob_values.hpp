// The values of a net's blobs as vectors.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "caffe/net.hpp"

namespace caffe::testing {

inline void Set(Net& net, const std::string& blob, const std::vector<float>& values) {
  ASSERT_EQ(net.blob_by_name(blob)->count(), static_cast<int64_t>(values.size()));
  std::copy(values.begin(), values.end(), net.blob_by_name(blob)->mutable_cpu_data<float>());
}

inline std::vector<float> Get(Net& net, const std::string& name) {
  const Blob& blob = *net.blob_by_name(name);
  return {blob.cpu_data<float>(), blob.cpu_data<float>() + blob.count()};
}

// The values of the first output after Forward().
inline std::vector<float> Output(Net& net) {
  const Blob& y = *net.Forward()[0];
  return {y.cpu_data(), y.cpu_data() + y.count()};
}

// The largest difference between `b` and `a`, relative to the largest number of `a`.
inline float MostDifferent(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  float most = 0, largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    most = std::max(most, std::abs(a[i] - b[i]));
    largest = std::max(largest, std::abs(a[i]));
  }
  return most / largest;
}

}  // namespace caffe::testing
