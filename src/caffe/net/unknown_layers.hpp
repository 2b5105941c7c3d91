// Lenient nets: layers of types that nobody has registered.
#pragma once

#include "caffe/proto/caffe.pb.h"

namespace caffe {

// The net without layers of unknown type and without those that need a top of one, with a warning
// that names each. All else computes what it would have computed. Throws InvalidArgument when
// nothing is left.
NetParameter WithoutUnknownLayers(const NetParameter& net);

}  // namespace caffe
