// A net for inference, made of the net that was trained.
//
//     caffe::Net net("train_val.prototxt", caffe::TEST);
//     caffe::NetParameter deploy = caffe::DeployNet(net);
#pragma once

#include <string>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/net.hpp"

namespace caffe {

// The definition of `net`, a net of phase TEST, with an Input of one item in the place of its data,
// and without the layers that need what only training and testing have: labels. What a softmax or
// sigmoid loss reads becomes probabilities, in a blob "prob". Include rules, and options that count
// in training alone, are gone. The net's ModelInfo is in it, but for a mean image, which a text
// would not hold well.
//
// `inputs` are the tops of data layers that the net is asked about; none: the first top of the
// first data layer. All others are labels. Throws InvalidArgument where one of them is no such top,
// and where nothing would be left.
CAFFE_EXPORT NetParameter DeployNet(const Net& net, const std::vector<std::string>& inputs = {});

}  // namespace caffe
