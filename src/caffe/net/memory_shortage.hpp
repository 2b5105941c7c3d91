// Checks that a plan fits into a device's memory, before any is allocated.
#pragma once

#include <cstdint>
#include <string>

namespace caffe {

// Bytes that a plan takes, or that others take while it runs.
struct MemoryNeed {
  int64_t activations = 0;  // and blobs: they grow with the batch
  int64_t workspace = 0;
  int64_t persistent = 0;  // parameters, gradients, states
  int64_t reserved = 0;    // for drivers and libraries, an estimate
  int64_t solver = 0;      // its history
  int64_t total() const { return activations + workspace + persistent + reserved + solver; }
};

// Empty if the need fits into the free memory. Otherwise one sentence: what is needed for what,
// what is free, and the largest batch that fits (`batch`: the plan's; 0: unknown).
std::string MemoryShortage(const MemoryNeed& need, int64_t free_bytes, int64_t batch);

}  // namespace caffe
