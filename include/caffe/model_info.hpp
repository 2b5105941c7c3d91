// What has to be known beside a net and its weights to ask it about an image: message ModelInfo of
// caffe.proto.
#pragma once

#include <string>

#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// What `net` says of itself and, where it says nothing, what its first data layer of phase TEST (of
// TRAIN where it has none) and the files beside that layer's data tell: mean and scale, how images
// were resized, and the names of the classes. Files that are not there tell nothing; those that are
// and cannot be read throw IoError or InvalidArgument.
CAFFE_EXPORT ModelInfo DescribeModel(const NetParameter& net);

// What training or a command put into a .caffemodel, of several files separated by commas the last
// that has it. Empty where none has it, as files of other programs and HDF5 files. Throws IoError.
CAFFE_EXPORT ModelInfo ModelInfoOfWeights(const std::string& files);

// `net` for people to read: without the mean image in its model_info, a line for each pixel, which
// training finds again beside the data.
CAFFE_EXPORT NetParameter WithoutMeanImage(NetParameter net);

// The fields that `over` has, and those of `info` that it has not.
CAFFE_EXPORT ModelInfo MergedModelInfo(const ModelInfo& info, const ModelInfo& over);

}  // namespace caffe
