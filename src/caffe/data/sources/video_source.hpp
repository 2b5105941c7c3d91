// Frames of a video file or a camera, with label 0: the VideoData layer's.
#pragma once

#include <memory>

#include "caffe/data/record_source.hpp"

namespace caffe::data {

// `data` says how many frames make a batch. Throws InvalidArgument for shuffle and cache, since
// frames are read in their order, and for a camera that several ranks are to read.
std::unique_ptr<RecordSource> MakeVideoSource(const DataParameter& data,
                                              const VideoDataParameter& video,
                                              const BatchSourceOptions& options);

}  // namespace caffe::data
