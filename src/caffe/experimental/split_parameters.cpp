#include "caffe/experimental/split_parameters.hpp"

namespace caffe {

SplitParameters::SplitParameters(Net& net, const std::vector<std::shared_ptr<Blob>>& history,
                                 bool with_gradients, Gather gather)
    : with_gradients_(with_gradients), gather_(std::move(gather)) {
  const auto& learnable = net.learnable_params();
  for (const SplitParam& param : TrainingNet(net).SplitParams()) {
    One one{.param = param, .states = {}};
    for (size_t i = 0; i < history.size(); ++i) {
      if (learnable[i % learnable.size()].blob == param.blob) one.states.push_back(history[i]);
    }
    params_.push_back(std::move(one));
  }
}

void SplitParameters::GatherWeights() {
  if (weights_are_whole_) return;
  for (const One& one : params_) gather_(one.param, &one.param.blob->data_tensor());
  weights_are_whole_ = true;
}

void SplitParameters::GatherAll() {
  GatherWeights();
  if (rest_is_whole_) return;
  for (const One& one : params_) {
    if (with_gradients_) gather_(one.param, &one.param.blob->diff_tensor());
    for (const std::shared_ptr<Blob>& state : one.states) gather_(one.param, &state->data_tensor());
  }
  rest_is_whole_ = true;
}

}  // namespace caffe
