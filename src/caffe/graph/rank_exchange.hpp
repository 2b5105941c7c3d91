// RankExchange: data that ranks of the same passes exchange within a pass.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace caffe {

// One rank's endpoint, for layers that are split over ranks.
struct RankExchange {
  // sent[r] goes to rank r, received[r] comes from it. A rendezvous: all ranks must call it with
  // matching sizes.
  using Call = std::function<void(std::span<const std::span<const char>> sent,
                                  std::span<const std::span<char>> received)>;

  int rank = 0, ranks = 1;
  Call call;  // empty while the other ranks do not make the same passes

  // First of rank r's share of `count` outputs; shares differ by at most one.
  int64_t Begin(int64_t count, int r) const { return count * r / ranks; }
  int64_t Size(int64_t count, int r) const { return Begin(count, r + 1) - Begin(count, r); }
};

}  // namespace caffe
