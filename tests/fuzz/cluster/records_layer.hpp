// Records of a simulated cluster: a layer of type "SimulatedRecords", whose records follow from
// their numbers.
#pragma once

#include <cstdint>

namespace caffe::fuzz {

// What goes wrong in these layers, of all nets of this process.
struct RecordFaults {
  int failing_rank = -1;     // throws instead of its batch
  int64_t failing_pass = 0;  // from 0
  int64_t shift = 0;         // a planted error: where a resumed run goes on is off by so many
};
extern RecordFaults the_record_faults;

}  // namespace caffe::fuzz
