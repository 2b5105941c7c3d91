// Upgrades the net's fields input, input_dim and input_shape to a layer of type Input.
#pragma once

#include <string>

#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Creates an Input layer at the beginning from the input fields of `net` and clears them. Ignores
// what BVLC 1.0 ignores, with a warning that begins with `source_name`: shapes without an input,
// excess shapes, input_dim together with input_shape, and an input without a shape that is another
// layer's top. Returns true if there were any input fields. Throws InvalidArgument if there are too
// few shapes.
bool UpgradeInputs(const std::string& source_name, NetParameter* net);

}  // namespace caffe
