// A plan in one line, for plans that are recorded in a file.
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

// The layers of `net` for a phase, with inputs instead of data layers. If the file does not give
// their shapes, those of ImageNet's photographs are used. Throws Unsupported for data layers whose
// shapes only a database determines.
NetParameter WithInputs(const std::filesystem::path& net, Phase phase);

// Plans like `caffe train` (TRAIN) or `caffe test`, but without the choice of kernels, which
// depends on the machine.
PlanSummary SummarizePlan(const NetParameter& net, const PrecisionDefaults& precision,
                          std::shared_ptr<Device> device);

}  // namespace caffe::testing
