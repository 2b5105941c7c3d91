// WholeIteration: the state to restore if an error interrupts an iteration.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "caffe/net/training_net.hpp"
#include "caffe/solvers/statistics_keeper.hpp"

namespace caffe {

// Forward passes consume records and change running statistics, so both are saved at the beginning
// of each iteration. `net` must outlive this object.
class WholeIteration {
 public:
  explicit WholeIteration(TrainingNet& net) : net_(net), statistics_(net) {}

  void Begin() {
    records_ = net_.delivered_records();
    statistics_.Save();
  }
  void End() { records_.reset(); }
  // Consumed records are not returned: see delivered_records().
  void Restore() {
    if (records_) statistics_.Restore();
  }
  // Records delivered by each data layer up to the last complete iteration.
  std::map<std::string, uint64_t> delivered_records() const {
    return records_ ? *records_ : net_.delivered_records();
  }

 private:
  TrainingNet& net_;
  StatisticsKeeper statistics_;
  std::optional<std::map<std::string, uint64_t>> records_;
};

}  // namespace caffe
