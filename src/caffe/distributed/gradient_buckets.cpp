#include "caffe/distributed/gradient_buckets.hpp"

#include "caffe/core/cache_lines.hpp"
#include "caffe/error.hpp"

namespace caffe {

// Gradients begin where the widest vector likes them to.
size_t PaddedBytes(size_t bytes) {
  return WholeLines(bytes);
}

std::vector<GradientBucket> FormBuckets(std::span<const GradientSize> gradients, int buckets) {
  Require(buckets > 0, "reduce_buckets is ", buckets, "; it must be at least 1");
  size_t total = 0;
  for (const GradientSize& gradient : gradients) total += PaddedBytes(gradient.bytes);
  const auto parts = static_cast<size_t>(buckets);
  const size_t enough = (total + parts - 1) / parts;
  std::vector<GradientBucket> formed;
  for (size_t first = 0; first < gradients.size();) {
    GradientBucket bucket{.first = first, .end = first, .dtype = gradients[first].dtype};
    do {
      bucket.bytes += PaddedBytes(gradients[bucket.end++].bytes);
    } while (bucket.end < gradients.size() && bucket.bytes < enough &&
             gradients[bucket.end].dtype == bucket.dtype);
    first = bucket.end;
    formed.push_back(bucket);
  }
  return formed;
}

}  // namespace caffe
