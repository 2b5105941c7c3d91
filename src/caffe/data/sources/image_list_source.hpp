// Image files listed in a text file with their labels, for the ImageData layer.
#pragma once

#include <memory>

#include "caffe/data/record_source.hpp"

namespace caffe::data {

std::unique_ptr<RecordSource> MakeImageListSource(const ImageDataParameter& images,
                                                  const BatchSourceOptions& options);

}  // namespace caffe::data
