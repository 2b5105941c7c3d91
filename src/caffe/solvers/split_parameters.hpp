// SplitParameters: parameters of which each rank updates a part.
#pragma once

#include <memory>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/net.hpp"
#include "caffe/net/training_net.hpp"
#include "caffe/solvers/data_parallel.hpp"

namespace caffe {

// While ranks train, each has current numbers in its own part only; before anybody else reads them,
// all ranks gather all parts. Without layers that are split nothing happens.
class SplitParameters {
 public:
  // `history` as Updater::history() has it. Gradients are gathered where snapshots have them.
  // `parallel` outlives this.
  SplitParameters(Net& net, const std::vector<std::shared_ptr<Blob>>& history, bool with_gradients,
                  DataParallel* parallel);

  bool are_there() const { return !params_.empty(); }
  // Whether all that is gathered is complete on this rank.
  bool are_whole() const { return weights_are_whole_ && rest_is_whole_; }
  // From here on each rank updates its parts.
  void BeginStep() { weights_are_whole_ = rest_is_whole_ = params_.empty(); }
  // Weights, or all that has parts; all ranks make the same call.
  void GatherWeights();
  void GatherAll();
  // All have been replaced.
  void MarkWhole() { weights_are_whole_ = rest_is_whole_ = true; }

 private:
  struct One {
    SplitParam param;
    std::vector<std::shared_ptr<Blob>> states;
  };

  std::vector<One> params_;
  const bool with_gradients_;
  DataParallel* const parallel_;
  bool weights_are_whole_ = true, rest_is_whole_ = true;
};

}  // namespace caffe
