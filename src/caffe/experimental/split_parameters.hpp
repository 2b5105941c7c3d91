// SplitParameters: parameters that are split, so that each rank updates a part of them.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/net.hpp"
#include "caffe/net/training_net.hpp"

namespace caffe {

// While ranks train, each has current values only in its own part; before others read them, all
// ranks gather all parts. Does nothing without layers that are split.
class SplitParameters {
 public:
  // Each rank's tensor contains its own part of the parameter; gathers those of the other ranks.
  using Gather = std::function<void(const SplitParam&, SyncedTensor*)>;

  // `history` as in Updater::history(). Gradients are gathered if snapshots contain them.
  SplitParameters(Net& net, const std::vector<std::shared_ptr<Blob>>& history, bool with_gradients,
                  Gather gather);

  bool are_there() const { return !params_.empty(); }
  // True if all gathered tensors are complete on this rank.
  bool are_whole() const { return weights_are_whole_ && rest_is_whole_; }
  // Called before each rank updates its parts.
  void BeginStep() { weights_are_whole_ = rest_is_whole_ = params_.empty(); }
  // Gather the weights, or all tensors with parts; all ranks must make the same call.
  void GatherWeights();
  void GatherAll();
  // Called after all tensors have been replaced.
  void MarkWhole() { weights_are_whole_ = rest_is_whole_ = true; }

 private:
  struct One {
    SplitParam param;
    std::vector<std::shared_ptr<Blob>> states;
  };

  std::vector<One> params_;
  const bool with_gradients_;
  const Gather gather_;
  bool weights_are_whole_ = true, rest_is_whole_ = true;
};

}  // namespace caffe
