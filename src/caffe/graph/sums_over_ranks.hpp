// SumsOverRanks: an interface of layers that need sums over the items of all ranks.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace caffe {

// A layer that also implements this interface gets the exchange while several ranks make the same
// passes. Without it, it uses the rank's own numbers.
class SumsOverRanks {
 public:
  // Rendezvous: all ranks must call the same functions with the same sizes.
  struct Exchange {
    // Sums each number over all ranks.
    std::function<void(std::span<double> numbers)> sum;
    // The numbers of all ranks, by rank. Each rank's numbers go to every other rank.
    std::function<std::vector<std::vector<double>>(const std::vector<double>& own)> gather;
  };

  virtual ~SumsOverRanks() = default;
  virtual void SetExchange(Exchange exchange) = 0;
};

}  // namespace caffe
