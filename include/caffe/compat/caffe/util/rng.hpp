// The generator of Caffe::rng_stream(), for programs that draw or shuffle with it.
#pragma once

#include <random>

#include "../common.hpp"

CAFFE_BVLC_BEGIN
typedef std::mt19937 rng_t;

// Returns the generator of the calling thread.
inline rng_t* caffe_rng() {
  return static_cast<rng_t*>(Caffe::rng_stream().generator());
}

// Returns a seed from the operating system.
inline int64_t cluster_seedgen() {
  return static_cast<int64_t>(std::random_device()());
}

// Fisher-Yates shuffle. The generator is a function object such as rng_t.
template <class RandomAccessIterator, class RandomGenerator>
inline void shuffle(RandomAccessIterator begin, RandomAccessIterator end, RandomGenerator* gen) {
  typedef typename std::iterator_traits<RandomAccessIterator>::difference_type Difference;
  for (Difference last = end - begin - 1; last > 0; --last) {
    std::iter_swap(begin + last, begin + std::uniform_int_distribution<Difference>(0, last)(*gen));
  }
}

template <class RandomAccessIterator>
inline void shuffle(RandomAccessIterator begin, RandomAccessIterator end) {
  shuffle(begin, end, caffe_rng());
}

CAFFE_BVLC_END
