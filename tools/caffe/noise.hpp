// Replaces data layers by noise, to time nets without their data.
#pragma once

#include "caffe/net.hpp"
#include "tools/caffe/options.hpp"

namespace caffe::tools {

// Replaces all data layers of the net in `file` by inputs, which PutNoise() fills. `batch` is the
// number of items per batch; 0 keeps the definition's. Returns the items per batch. Throws
// InvalidArgument if a data layer's options do not say the size of its images.
int64_t ReplaceDataByNoise(const std::string& file, int batch, NetFlags* flags);

// Fills the inputs of a net of this definition: labels with random classes, everything else with
// Gaussian noise. The data stays in the device's memory.
void PutNoise(const NetParameter& definition, Net& net);

}  // namespace caffe::tools
