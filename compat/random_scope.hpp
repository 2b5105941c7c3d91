// RandomScope: while it exists, Caffe::rng_stream() is a separate stream.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "caffe/compat/caffe/common.hpp"
#include "caffe/core/philox.hpp"

namespace caffe::bvlc {

// A layer's random numbers depend only on the net's seed, the layer and the pass, so that a resumed
// run continues with the same numbers, regardless of other draws in the thread.
class RandomScope {
 public:
  RandomScope(uint64_t seed, std::string_view layer, uint64_t pass)
      : outer_(std::exchange(Caffe::Get().random_,
                             Caffe::RNG(RandomStream(seed, StreamOf(layer)).Bits(0, pass)))) {}
  ~RandomScope() { Caffe::Get().random_ = outer_; }
  RandomScope(const RandomScope&) = delete;
  RandomScope& operator=(const RandomScope&) = delete;

 private:
  Caffe::RNG outer_;
};

}  // namespace caffe::bvlc
