#include "caffe/distributed/gather_routes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace caffe {
namespace {

using Hops = std::vector<GatherRoutes::Hop>;
using Names = std::vector<std::string>;

// The routes of all ranks.
struct AllRoutes {
  explicit AllRoutes(Names names) : machines(std::move(names)) {
    for (int rank = 0; rank < ranks(); ++rank) of.push_back(RoutesOf(rank, machines));
  }
  int ranks() const { return static_cast<int>(machines.size()); }

  // (from, to): the owners whose bytes take this way, in the order of sending or receiving.
  using Flow = std::map<std::pair<int, int>, std::vector<int>>;
  Flow Sent(Hops GatherRoutes::*hops) const {
    Flow flow;
    for (int rank = 0; rank < ranks(); ++rank) {
      for (const auto& [owner, peer] : of[rank].*hops) flow[{rank, peer}].push_back(owner);
    }
    return flow;
  }
  Flow Received(Hops GatherRoutes::*hops) const {
    Flow flow;
    for (int rank = 0; rank < ranks(); ++rank) {
      for (const auto& [owner, peer] : of[rank].*hops) flow[{peer, rank}].push_back(owner);
    }
    return flow;
  }

  Names machines;
  std::vector<GatherRoutes> of;
};

const Names kLayouts[] = {
    {"a"},
    {"a", "b"},
    {"a", "a", "a"},
    {"a", "a", "b", "b"},
    {"a", "a", "a", "b", "b"},
    {"a", "b", "a", "b"},
    {"a", "b", "b", "c", "c", "c", "a", "c"},
};

TEST(GatherRoutes, EachRankGetsTheBytesOfAllOthersOnce) {
  for (const Names& layout : kLayouts) {
    const AllRoutes routes(layout);
    for (int rank = 0; rank < routes.ranks(); ++rank) {
      std::multiset<int> received, expected;
      for (const auto& hop : routes.of[rank].receives) received.insert(hop.owner);
      for (const auto& hop : routes.of[rank].relayed) received.insert(hop.owner);
      for (int other = 0; other < routes.ranks(); ++other) {
        if (other != rank) expected.insert(other);
      }
      EXPECT_EQ(received, expected) << "rank " << rank;
    }
  }
}

TEST(GatherRoutes, WhatIsSentIsReceivedInThatOrder) {
  for (const Names& layout : kLayouts) {
    const AllRoutes routes(layout);
    EXPECT_EQ(routes.Sent(&GatherRoutes::sends), routes.Received(&GatherRoutes::receives));
    EXPECT_EQ(routes.Sent(&GatherRoutes::relays), routes.Received(&GatherRoutes::relayed));
  }
}

TEST(GatherRoutes, RelaysHaveWhatTheySend) {
  for (const Names& layout : kLayouts) {
    const AllRoutes routes(layout);
    for (int rank = 0; rank < routes.ranks(); ++rank) {
      std::set<int> received;
      for (const auto& hop : routes.of[rank].receives) received.insert(hop.owner);
      for (const auto& hop : routes.of[rank].relays) {
        EXPECT_TRUE(received.count(hop.owner)) << "rank " << rank << ", owner " << hop.owner;
      }
    }
  }
}

TEST(GatherRoutes, BytesEnterAMachineOnce) {
  for (const Names& layout : kLayouts) {
    const AllRoutes routes(layout);
    std::map<std::pair<int, std::string>, int> entries;
    for (int rank = 0; rank < routes.ranks(); ++rank) {
      for (const auto& hop : routes.of[rank].sends) {
        if (layout[hop.peer] != layout[rank]) ++entries[{rank, layout[hop.peer]}];
      }
      for (const auto& hop : routes.of[rank].relays) {
        EXPECT_EQ(layout[hop.peer], layout[rank]) << "a relay stays on its machine";
      }
    }
    const std::set<std::string> machines(layout.begin(), layout.end());
    EXPECT_EQ(entries.size(), layout.size() * (machines.size() - 1));
    for (const auto& [entry, count] : entries) EXPECT_EQ(count, 1) << "owner " << entry.first;
  }
}

TEST(GatherRoutes, RanksOfAMachineRelayInTurn) {
  const AllRoutes routes({"a", "a", "a", "b", "b", "b"});
  for (const GatherRoutes& one : routes.of) EXPECT_EQ(one.relays.size(), 2);
}

TEST(GatherRoutes, WithOneRankOnEachMachineNothingIsRelayed) {
  const AllRoutes routes({"a", "b", "c"});
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(routes.of[rank].relays.empty() && routes.of[rank].relayed.empty());
    EXPECT_EQ(routes.of[rank].sends.size(), 2);
    const GatherRoutes direct = RoutesOf(rank, std::vector<std::string>(3));
    EXPECT_TRUE(direct.relays.empty() && direct.relayed.empty());
    EXPECT_EQ(direct.sends.size(), 2);
    EXPECT_EQ(direct.receives.size(), 2);
  }
}

}  // namespace
}  // namespace caffe
