// A decoded image with the objects in it, on its way through the augmentations.
#pragma once

#include <opencv2/core.hpp>
#include <vector>

#include "caffe/core/philox.hpp"
#include "caffe/data/transformers/object_box.hpp"

namespace caffe::data {

struct Picture {
  cv::Mat image;  // interleaved bytes
  std::vector<ObjectBox> boxes;
};

// The random numbers of one record, one after the other.
class Draws {
 public:
  Draws(const RandomStream& stream, uint64_t record) : stream_(stream), record_(record) {}

  uint32_t Bits() { return stream_.Bits(next_++, record_); }
  // [low, high)
  float Uniform(float low, float high) { return low + (high - low) * ToUniform(Bits()); }
  bool Chance(float probability) { return ToUniform(Bits()) < probability; }
  // 0 .. range - 1
  int Below(int range) { return static_cast<int>(ToRange(Bits(), static_cast<uint32_t>(range))); }

 private:
  const RandomStream& stream_;
  uint64_t record_;
  uint64_t next_ = 0;
};

}  // namespace caffe::data
