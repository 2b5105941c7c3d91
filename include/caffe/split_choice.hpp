// Which layers ranks that train together had better split: `--parallel auto`.
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

// An InnerProduct layer that several ranks can split. Of one iteration and one rank.
struct SplitChoice {
  std::string layer;
  int number = 0;                // of the layer in the net
  double gradient_bytes = 0;     // on the wire, that are reduced without the split
  double exchanged_bytes = 0;    // that it sends to each other rank with it
  int exchanges = 0;             // calls in which it does
  double reduction_seconds = 0;  // on a machine as it is assumed
  double exchange_seconds = 0;
  bool is_split = false;
};

// Layers of a net that is planned for one rank with backward: those with `parallel: SPLIT_OUTPUT`,
// which are split, and those that say nothing of `parallel`. Of these, `by_cost` splits where
// exchanging activations costs less than reducing gradients, in a network and on a processor as
// they are assumed, so that all ranks come to the same. `passes` forward and backward passes make a
// step.
CAFFE_EXPORT std::vector<SplitChoice> ChooseSplits(const Net& net, int ranks, bool by_cost,
                                                   int passes = 1);

// The names of those that are split.
CAFFE_EXPORT std::vector<std::string> SplitLayersOf(const std::vector<SplitChoice>& choices);

// The timeline of a rank among others that split layers: of one that computes alone, without the
// gradients that are not reduced, and with the rank's part of the update.
CAFFE_EXPORT StepTimeline WithSplits(StepTimeline timeline, const std::vector<SplitChoice>& choices,
                                     int ranks);

// A table of them, with what has been chosen.
CAFFE_EXPORT std::string FormatSplits(const std::vector<SplitChoice>& choices, int ranks);

}  // namespace caffe
