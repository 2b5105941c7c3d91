// RandomScope: while it exists, Caffe::rng_stream() is a stream of its own.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "caffe/compat/caffe/common.hpp"
#include "caffe/core/philox.hpp"

namespace caffe::bvlc {

// What a layer draws depends on the net's seed, the layer and the pass alone, so that a resumed run
// continues as it would have, whatever else draws in the thread.
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
