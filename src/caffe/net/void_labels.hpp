// Labels that stand for no class.
#pragma once

#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Sets, for each Accuracy without an ignore_label, the label that a loss with the same label blob
// ignores (void_label). In SegNet's nets that label is out of range, and SegNet's own Accuracy
// reads out of bounds for it.
void TakeVoidLabels(NetParameter* net);

}  // namespace caffe
