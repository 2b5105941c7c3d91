// A plan in one line, for plans that are pinned in a file.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "caffe/device/device.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::testing {

struct PlanSummary {
  int steps = 0;           // without copies of weights
  int conversions = 0;     // among the steps
  int weight_copies = 0;   // in another type or layout, or folded; see graph/weight_copies.hpp
  int inputs = 0;          // blobs and data tops that the net reads
  int unread = 0;          // steps whose results nobody reads
  double bytes_moved = 0;  // read and written, by copies of weights too
  int64_t arena_bytes = 0;

  std::string ToString() const;
};

// The layers of `net` that its phase has, with inputs in place of data layers, whose shapes are
// those of ImageNet's photographs where the file does not say. Throws Unsupported for data layers
// whose shapes only a database can tell.
NetParameter WithInputs(const std::filesystem::path& net, Phase phase);

// Plans as `caffe train` (TRAIN) or `caffe test` would, up to the choice of kernels, which depends
// on the machine.
PlanSummary SummarizePlan(const NetParameter& net, const PrecisionDefaults& precision,
                          std::shared_ptr<Device> device);

}  // namespace caffe::testing
