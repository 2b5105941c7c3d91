// DataMemory: host memory that data layers of nets use outside their plans.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "caffe/net.hpp"
#include "caffe/plan_report.hpp"

namespace caffe {

// Enough batches to use every record.
inline constexpr uint64_t kEndless = std::numeric_limits<uint32_t>::max();

class DataMemory {
 public:
  // Adds the memory of the net's data layers after each has delivered `batches`.
  void Add(const Net& net, uint64_t batches);
  void PutInto(PlanMemory* memory) const;

 private:
  int64_t read_ahead_ = 0;
  std::map<std::string, int64_t> mapped_;  // by file: nets that read the same file share its pages
};

}  // namespace caffe
