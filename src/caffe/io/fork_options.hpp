// Options that forks of Caffe gave other names than Caffe did later.
#pragma once

#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Turns DeepLab's hole, hole_h and hole_w into dilation. Returns whether any was there. Throws
// InvalidArgument, naming the layer, where they contradict each other or dilation.
bool UpgradeHoles(LayerParameter* layer);

}  // namespace caffe
