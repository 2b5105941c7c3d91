// DataMemory: host memory that the data layers of some nets take beside their plans.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "caffe/net.hpp"
#include "caffe/plan_report.hpp"

namespace caffe {

// So many batches that each record is used.
inline constexpr uint64_t kEndless = std::numeric_limits<uint32_t>::max();

class DataMemory {
 public:
  // Of the net's data layers, after each has given `batches`.
  void Add(const Net& net, uint64_t batches);
  void PutInto(PlanMemory* memory) const;

 private:
  int64_t read_ahead_ = 0;
  std::map<std::string, int64_t> mapped_;  // by file: nets that read one share its pages
};

}  // namespace caffe
