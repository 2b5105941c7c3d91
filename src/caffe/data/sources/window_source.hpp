// Boxes cropped from images, foreground and background in a fixed proportion, for the WindowData
// layer.
#pragma once

#include <memory>

#include "caffe/data/record_source.hpp"

namespace caffe::data {

std::unique_ptr<RecordSource> MakeWindowSource(const WindowDataParameter& windows,
                                               const BatchSourceOptions& options);

}  // namespace caffe::data
