// RankExchange: what ranks that make the same passes send each other within a pass.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace caffe {

// One rank's end, of layers that are split over ranks.
struct RankExchange {
  // sent[r] goes to rank r, received[r] comes from it. All ranks must call it alike; waits for
  // them.
  using Call = std::function<void(std::span<const std::span<const char>> sent,
                                  std::span<const std::span<char>> received)>;

  int rank = 0, ranks = 1;
  Call call;  // empty while others do not make the same passes

  // Where rank r's part of `count` outputs begins; parts differ by one at most.
  int64_t Begin(int64_t count, int r) const { return count * r / ranks; }
  int64_t Size(int64_t count, int r) const { return Begin(count, r + 1) - Begin(count, r); }
};

}  // namespace caffe
