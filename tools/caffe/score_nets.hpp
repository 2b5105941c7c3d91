// What the commands that score models have in common.
#pragma once

#include <functional>

#include "caffe/net.hpp"

namespace caffe::tools {

// Calls `score` with each net of -model in turn: of phase TEST, with the weights of -weights.
void ScoreNets(const std::function<void(Net& net)>& score);

}  // namespace caffe::tools
