// Lenient nets: drops layers of unregistered types.
#pragma once

#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Returns the net without layers of unknown type and without layers that need their tops. Logs a
// warning that names each of them. All other results stay the same. Throws InvalidArgument if no
// layer is left.
NetParameter WithoutUnknownLayers(const NetParameter& net);

}  // namespace caffe
