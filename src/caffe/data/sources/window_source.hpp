// Boxes cut out of images, foreground and background in a fixed proportion: the WindowData layer's.
#pragma once

#include <memory>

#include "caffe/data/record_source.hpp"

namespace caffe::data {

std::unique_ptr<RecordSource> MakeWindowSource(const WindowDataParameter& windows,
                                               const BatchSourceOptions& options);

}  // namespace caffe::data
