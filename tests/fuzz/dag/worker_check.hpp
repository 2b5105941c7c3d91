// Training with two workers, and with one that has the batches of both.
#pragma once

#include <string>

#include "tests/fuzz/dag/net_run.hpp"

namespace caffe::fuzz {

// Returns whether each item goes through the net separately, and losses are means over the items.
bool CanBeDivided(const NetParameter& net);
// The same for one layer.
bool CanBeDivided(const LayerParameter& layer);

// Registers a type of layers that process each item of axis 0 separately, unless an option names
// that axis.
struct ItemwiseLayer {
  explicit ItemwiseLayer(const std::string& type);
};

struct WorkerResult {
  Numbers one_worker, two_workers;  // parameters after two updates in double
  std::string refusal;              // the library's user error
  std::string failure;              // anything else that it threw
};

WorkerResult RunWorkers(const NetParameter& net);

// The parameters of one worker when the net runs in float, to measure the effect of rounding.
Numbers RunWorkerInFloat(const NetParameter& net);

}  // namespace caffe::fuzz
