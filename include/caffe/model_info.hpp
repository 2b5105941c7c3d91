// Facts besides a net and its weights that are needed to classify an image: message ModelInfo of
// caffe.proto.
#pragma once

#include <string>

#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Returns the net's own ModelInfo. Missing fields are filled from its first data layer of phase
// TEST (TRAIN if it has none) and the files of that layer's data: mean and scale, how images were
// resized, and the class names. Files that do not exist are ignored; files that cannot be read
// throw IoError or InvalidArgument.
CAFFE_EXPORT ModelInfo DescribeModel(const NetParameter& net);

// The ModelInfo that training or a command stored in a .caffemodel; of several files, separated by
// commas, the last that has one. Empty if none has, as in files of other programs and in HDF5
// files. Throws IoError.
CAFFE_EXPORT ModelInfo ModelInfoOfWeights(const std::string& files);

// Returns `net` without the mean image in its model_info, for people to read: the image would be
// one line per pixel, and training finds it again with the data.
CAFFE_EXPORT NetParameter WithoutMeanImage(NetParameter net);

// Returns `info` with the fields that `over` sets replaced.
CAFFE_EXPORT ModelInfo MergedModelInfo(const ModelInfo& info, const ModelInfo& over);

}  // namespace caffe
