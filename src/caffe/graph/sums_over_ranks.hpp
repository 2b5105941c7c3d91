// SumsOverRanks: layers whose results depend on the items of all ranks.
#pragma once

#include <functional>
#include <span>

namespace caffe {

// A layer that is one as well is given the sum while several ranks make the same passes. Without a
// sum, the rank's own numbers stand.
class SumsOverRanks {
 public:
  // Adds up each number over all ranks, which must call it alike; waits for them.
  using Sum = std::function<void(std::span<double> numbers)>;

  virtual ~SumsOverRanks() = default;
  virtual void SetSum(Sum sum) = 0;
};

}  // namespace caffe
