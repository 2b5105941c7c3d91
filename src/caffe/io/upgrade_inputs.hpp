// The net's fields input, input_dim and input_shape, which today are a layer of type Input.
#pragma once

#include <string>

#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Makes an Input layer, placed first, of the input fields of `net` and clears them. What BVLC 1.0
// leaves out is left out with a warning that begins with `source_name`: shapes without an input,
// shapes beyond those of the inputs, input_dim beside input_shape, and an input without a shape
// that is another layer's top. Returns whether anything was there. Throws InvalidArgument where
// there are too few shapes.
bool UpgradeInputs(const std::string& source_name, NetParameter* net);

}  // namespace caffe
