// Messages between ranks within a pass, for tests of communicators.
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "caffe/distributed/communicator.hpp"
#include "caffe/error.hpp"

namespace caffe::testing {

// Rank `from` sends each other rank, and itself, a text with its own length. Rank 0 is expected to
// send `surplus` bytes more than it sends.
inline void ExchangeBlocks(Communicator& communicator, size_t surplus = 0) {
  const auto text = [](int from, int to) {
    return std::string(static_cast<size_t>(from) * 70'000 + static_cast<size_t>(to), 'a') +
           StrCat(from, " to ", to);
  };
  const int rank = communicator.rank(), ranks = communicator.ranks();
  std::vector<std::string> out, in;
  for (int other = 0; other < ranks; ++other) {
    out.push_back(text(rank, other));
    in.push_back(std::string(text(other, rank).size() + (other == 0 ? surplus : 0), '?'));
  }
  const std::vector<std::span<const char>> sent(out.begin(), out.end());
  const std::vector<std::span<char>> received(in.begin(), in.end());
  communicator.ExchangeInPass(sent, received);
  for (int other = 0; other < ranks; ++other) EXPECT_EQ(in[other], text(other, rank));
}

}  // namespace caffe::testing
