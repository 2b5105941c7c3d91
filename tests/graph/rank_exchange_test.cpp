#include "caffe/graph/rank_exchange.hpp"

#include <gtest/gtest.h>

namespace caffe {
namespace {

// 16 bytes of 16-bit numbers, as which matrix products of GPUs read a bias.
TEST(RankExchangeTest, PartsOfManyOutputsBeginAtMultiplesOf8) {
  for (const int ranks : {2, 3, 7, 8}) {
    const RankExchange exchange{.rank = 0, .ranks = ranks, .call = {}};
    for (const int64_t count : {8 * ranks, 8 * ranks + 1, 1000, 4096, 4099}) {
      EXPECT_EQ(exchange.Begin(count, 0), 0);
      EXPECT_EQ(exchange.Begin(count, ranks), count);
      for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(exchange.Begin(count, rank) % 8, 0) << count << " over " << ranks;
        EXPECT_GT(exchange.Size(count, rank), 0);
        EXPECT_LT(exchange.Size(count, rank), count / ranks + 16);
      }
    }
  }
}

TEST(RankExchangeTest, PartsOfFewOutputsDifferByOne) {
  const RankExchange exchange{.rank = 0, .ranks = 3, .call = {}};
  EXPECT_EQ(exchange.Size(10, 0), 3);
  EXPECT_EQ(exchange.Size(10, 1), 3);
  EXPECT_EQ(exchange.Size(10, 2), 4);
}

}  // namespace
}  // namespace caffe
