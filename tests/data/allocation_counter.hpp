// Counts allocations with `new` in the whole test program, in every thread.
#pragma once

#include <cstdint>

namespace caffe::data {

uint64_t AllocationCount();

}  // namespace caffe::data
