// Options that had other names in forks than later in Caffe.
#pragma once

#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Converts DeepLab's hole, hole_h and hole_w to dilation. Returns true if there were any. Throws
// InvalidArgument, naming the layer, if they contradict each other or dilation.
bool UpgradeHoles(LayerParameter* layer);

}  // namespace caffe
