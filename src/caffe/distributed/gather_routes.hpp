// The messages with which the bytes of each rank reach all other ranks.
#pragma once

#include <string>
#include <vector>

namespace caffe {

// One rank's part. In the first round owners send their bytes to the ranks of their own machine and
// to one rank of each other machine. In the second round this rank, the relay, sends them to the
// others of its machine, so that a network carries them once for each machine, not once for each
// rank. The owners of a machine take the ranks of another machine as relays in turn.
struct GatherRoutes {
  struct Hop {
    int owner = 0;  // whose bytes travel
    int peer = 0;   // where to, or where from
  };
  std::vector<Hop> sends, receives;
  std::vector<Hop> relays, relayed;
};

// `machines`: the name of each rank's machine, the same list on all ranks. Ranks with equal names
// share a machine; a wrong name costs time, but no bytes are missing. With all ranks on one machine
// nothing is relayed: the second round is empty.
GatherRoutes RoutesOf(int rank, const std::vector<std::string>& machines);

}  // namespace caffe
