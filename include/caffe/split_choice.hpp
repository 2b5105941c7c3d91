// Chooses the layers to split over ranks that train together: `--parallel auto`.
//
//   for (const SplitChoice& one : ChooseSplits(net, 2, /*by_cost=*/true)) Print(one.layer,
//   one.is_split);
#pragma once

#include <string>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/net.hpp"
#include "caffe/scaling.hpp"

namespace caffe {

// An InnerProduct layer that several ranks can split. Costs are per iteration and rank.
struct SplitChoice {
  std::string layer;
  int number = 0;                // index of the layer in the net
  double gradient_bytes = 0;     // reduced on the wire if it is not split
  double exchanged_bytes = 0;    // sent to each other rank if it is split
  int exchanges = 0;             // number of calls that send them
  double reduction_seconds = 0;  // estimated for the assumed machine
  double exchange_seconds = 0;
  bool is_split = false;
};

// Returns the layers of a net, planned for one rank with backward, that are split because they have
// `parallel: SPLIT_OUTPUT` or that do not set `parallel`. With `by_cost`, the latter are split if
// exchanging activations costs less than reducing gradients, on an assumed network and processor,
// so that all ranks decide alike. `passes` forward and backward passes make a step.
CAFFE_EXPORT std::vector<SplitChoice> ChooseSplits(const Net& net, int ranks, bool by_cost,
                                                   int passes = 1);

// The names of the layers that are split.
CAFFE_EXPORT std::vector<std::string> SplitLayersOf(const std::vector<SplitChoice>& choices);

// Converts the timeline of a rank that trains alone to that of a rank among others that split
// layers: without the gradients that are not reduced, and with the rank's part of the update.
CAFFE_EXPORT StepTimeline WithSplits(StepTimeline timeline, const std::vector<SplitChoice>& choices,
                                     int ranks);

// A table of the candidates, with the choices made.
CAFFE_EXPORT std::string FormatSplits(const std::vector<SplitChoice>& choices, int ranks);

}  // namespace caffe
