// A small net that learns classes of noise, for testing layers between its images and its loss.
#pragma once

#include <string>

#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"

namespace caffe::testing {

struct NoiseImages {
  int items = 4, height = 9, width = 8;
};

// A net for training. `layers` read the blob "data", images of 3 channels; an InnerProduct of three
// classes and SoftmaxWithLoss read `last`.
inline NetParameter ClassifierNet(const std::string& layers, const std::string& last,
                                  const NoiseImages& images = {}) {
  NetParameter param;
  ParseTextProto(
      StrCat("layer { name: 'data' type: 'DummyData' top: 'data' top: 'label' dummy_data_param { "
             "shape { dim: ",
             images.items, " dim: 3 dim: ", images.height, " dim: ", images.width,
             " } shape { dim: ", images.items,
             " } "
             "data_filler { type: 'gaussian' } data_filler { type: 'constant' value: 1 } } } ",
             layers, "layer { name: 'ip' type: 'InnerProduct' bottom: '", last,
             "' top: 'ip' inner_product_param { num_output: 3 weight_filler { type: 'xavier' } } } "
             "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' "
             "top: 'loss' }"),
      "net", &param);
  param.mutable_state()->set_phase(TRAIN);
  return param;
}

}  // namespace caffe::testing
