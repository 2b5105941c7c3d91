// Labels that stand for no class.
#pragma once

#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Tells each Accuracy without an ignore_label which label a loss that reads the same labels
// ignores (void_label). In SegNet's nets that is a number beyond the classes, for which its own
// Accuracy reads memory that is not its own.
void TakeVoidLabels(NetParameter* net);

}  // namespace caffe
