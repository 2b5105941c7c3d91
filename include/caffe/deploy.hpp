// Builds a net for inference from a trained net.
//
//     caffe::Net net("train_val.prototxt", caffe::TEST);
//     caffe::NetParameter deploy = caffe::DeployNet(net);
#pragma once

#include <string>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/net.hpp"

namespace caffe {

// Returns the definition of `net`, a net of phase TEST, with an Input of one item instead of its
// data layers and without the layers that need labels. The input of a softmax or sigmoid loss
// becomes probabilities, in a blob "prob". Include rules and options that matter only in training
// are removed. The net's ModelInfo is included except for a mean image, which is too large for a
// text file.
//
// `inputs` are the tops of data layers that become inputs of the deploy net; if empty, the first
// top of the first data layer. All others count as labels. Throws InvalidArgument if an input is
// not such a top, or if no layer would remain.
CAFFE_EXPORT NetParameter DeployNet(const Net& net, const std::vector<std::string>& inputs = {});

}  // namespace caffe
