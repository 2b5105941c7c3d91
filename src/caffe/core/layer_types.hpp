// Names of the layer types, for readers of definitions, which know no layers.
#pragma once

#include <string>
#include <vector>

#include "caffe/export.hpp"

namespace caffe {

// The types that are registered so far, sorted. Empty if the program has no layers.
CAFFE_EXPORT std::vector<std::string> LayerTypeNames();

// Says where the names come from. The registry of layers calls this when the library is loaded.
void SetLayerTypeNames(std::vector<std::string> (*names)());

}  // namespace caffe
