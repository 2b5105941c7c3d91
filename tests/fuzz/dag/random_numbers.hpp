// Gives the same numbers for a seed with every compiler and library, so that a seed identifies a
// net.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace caffe::fuzz {

// SplitMix64 (Steele, Lea and Flood 2014).
class RandomNumbers {
 public:
  explicit RandomNumbers(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // In [0, count).
  int Below(int64_t count) { return static_cast<int>(Next() % static_cast<uint64_t>(count)); }
  // In [least, most].
  int Between(int least, int most) { return least + Below(most - least + 1); }
  // In [-1, 1).
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-52 - 1; }
  // Mean 0 and variance 1, never beyond 6: a sum of twelve.
  double Normal() {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += Uniform();
    return sum / 2;
  }
  bool Chance(double probability) { return (Uniform() + 1) / 2 < probability; }

  template <typename T>
  const T& Pick(const std::vector<T>& choices) {
    return choices[Below(static_cast<int64_t>(choices.size()))];
  }
  template <typename T>
  T Pick(std::initializer_list<T> choices) {
    return *(choices.begin() + Below(static_cast<int64_t>(choices.size())));
  }

 private:
  uint64_t state_;
};

}  // namespace caffe::fuzz
