// Frames of a video file or a camera, with label 0, for the VideoData layer.
#pragma once

#include <memory>

#include "caffe/data/record_source.hpp"

namespace caffe::data {

// `data` contains the batch size. Throws InvalidArgument for shuffle and cache, because frames are
// read in order, and for a camera with several ranks.
std::unique_ptr<RecordSource> MakeVideoSource(const DataParameter& data,
                                              const VideoDataParameter& video,
                                              const BatchSourceOptions& options);

}  // namespace caffe::data
