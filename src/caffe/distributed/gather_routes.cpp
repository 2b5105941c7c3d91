#include "caffe/distributed/gather_routes.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace caffe {
namespace {

class Machines {
 public:
  explicit Machines(const std::vector<std::string>& names) {
    std::map<std::string, int> numbers;
    for (size_t rank = 0; rank < names.size(); ++rank) {
      const int count = static_cast<int>(numbers.size());
      const int machine = numbers.emplace(names[rank], count).first->second;
      if (machine == count) ranks_of_.emplace_back();
      machine_of_.push_back(machine);
      place_of_.push_back(ranks_of_[machine].size());
      ranks_of_[machine].push_back(static_cast<int>(rank));
    }
  }

  int ranks() const { return static_cast<int>(machine_of_.size()); }
  const std::vector<int>& Beside(int rank) const { return ranks_of_[machine_of_[rank]]; }

  // Which rank sends the owner's bytes to `receiver`.
  int SenderTo(int receiver, int owner) const {
    if (machine_of_[owner] == machine_of_[receiver]) return owner;
    const std::vector<int>& there = Beside(receiver);
    const int relay = there[place_of_[owner] % there.size()];
    return relay == receiver ? owner : relay;
  }

 private:
  std::vector<int> machine_of_;             // by rank
  std::vector<size_t> place_of_;            // of a rank among those of its machine
  std::vector<std::vector<int>> ranks_of_;  // by machine, ascending
};

}  // namespace

GatherRoutes RoutesOf(int rank, const std::vector<std::string>& names) {
  const Machines machines(names);
  GatherRoutes routes;
  for (int other = 0; other < machines.ranks(); ++other) {
    if (other == rank) continue;
    if (machines.SenderTo(other, rank) == rank) routes.sends.push_back({rank, other});
    const int sender = machines.SenderTo(rank, other);
    (sender == other ? routes.receives : routes.relayed).push_back({other, sender});
    for (const int beside : machines.Beside(rank)) {
      if (beside != rank && beside != other && machines.SenderTo(beside, other) == rank) {
        routes.relays.push_back({other, beside});
      }
    }
  }
  return routes;
}

}  // namespace caffe
