// Records of a simulated cluster: a layer of type "SimulatedRecords", whose records are derived
// from their numbers.
#pragma once

#include <cstdint>

namespace caffe::fuzz {

// Faults of these layers, for all nets of this process.
struct RecordFaults {
  int failing_rank = -1;     // throws instead of giving its batch
  int64_t failing_pass = 0;  // counted from 0
  int64_t shift = 0;         // planted error: a resumed run continues this many records off
};
extern RecordFaults the_record_faults;

}  // namespace caffe::fuzz
