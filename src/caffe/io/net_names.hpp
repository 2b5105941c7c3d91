// Names in the definition of a net.
#pragma once

#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Throws InvalidArgument when a name of the net, of a layer, a blob or a parameter holds control
// characters: names stand in logs and messages, where a line break or an escape sequence of
// somebody else's file would look like our own words.
void CheckNames(const NetParameter& net);

}  // namespace caffe
