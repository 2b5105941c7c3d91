// Noise in the place of what data layers make, for nets that are timed without their data.
#pragma once

#include "caffe/net.hpp"
#include "tools/caffe/options.hpp"

namespace caffe::tools {

// Replaces all data layers of the net in `file` by inputs, which PutNoise() fills. `batch`: items
// instead of the definition's own; 0: as many. Returns the items of a batch. Throws InvalidArgument
// where the options of a data layer do not say the size of its images.
int64_t ReplaceDataByNoise(const std::string& file, int batch, NetFlags* flags);

// Fills the inputs of a net of this definition: labels with numbers of classes, everything else
// with normal noise. They stay in the device's memory.
void PutNoise(const NetParameter& definition, Net& net);

}  // namespace caffe::tools
