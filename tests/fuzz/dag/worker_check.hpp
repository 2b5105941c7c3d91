// Training by two workers, and by one that has the batches of both.
#pragma once

#include <string>

#include "tests/fuzz/dag/net_run.hpp"

namespace caffe::fuzz {

// Whether each item goes through the net on its own, and losses are means over the items.
bool CanBeDivided(const NetParameter& net);
// The same of one layer.
bool CanBeDivided(const LayerParameter& layer);

struct WorkerResult {
  Numbers one_worker, two_workers;  // parameters after two updates of the net in double
  std::string refusal;              // the user's error of the library
  std::string failure;              // anything else that it threw
};

WorkerResult RunWorkers(const NetParameter& net);

// The parameters of one worker when the net runs in float: how far rounding takes them.
Numbers RunWorkerInFloat(const NetParameter& net);

}  // namespace caffe::fuzz
