// SumsOverRanks: an interface of layers that need sums over the items of all ranks.
#pragma once

#include <functional>
#include <span>

namespace caffe {

// A layer that also implements this interface gets the sum while several ranks make the same
// passes. Without a sum, it uses the rank's own numbers.
class SumsOverRanks {
 public:
  // Sums each number over all ranks. A rendezvous: all ranks must call it with the same sizes.
  using Sum = std::function<void(std::span<double> numbers)>;

  virtual ~SumsOverRanks() = default;
  virtual void SetSum(Sum sum) = 0;
};

}  // namespace caffe
