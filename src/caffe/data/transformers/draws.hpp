// The random numbers for one record.
#pragma once

#include <cstdint>

#include "caffe/core/philox.hpp"

namespace caffe::data {

// Returns one number after the other; they depend only on the stream and the record's number.
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
