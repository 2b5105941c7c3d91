// WholeIteration: what a run goes back to when an error breaks off an iteration.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "caffe/net/training_net.hpp"
#include "caffe/solvers/statistics_keeper.hpp"

namespace caffe {

// Forward passes take records and change running statistics, so both are remembered as they were
// when the iteration under way began. `net` outlives this.
class WholeIteration {
 public:
  explicit WholeIteration(TrainingNet& net) : net_(net), statistics_(net) {}

  void Begin() {
    records_ = net_.delivered_records();
    statistics_.Save();
  }
  void End() { records_.reset(); }
  // Records stay taken: see delivered_records().
  void Restore() {
    if (records_) statistics_.Restore();
  }
  // By each data layer until the last whole iteration.
  std::map<std::string, uint64_t> delivered_records() const {
    return records_ ? *records_ : net_.delivered_records();
  }

 private:
  TrainingNet& net_;
  StatisticsKeeper statistics_;
  std::optional<std::map<std::string, uint64_t>> records_;
};

}  // namespace caffe
