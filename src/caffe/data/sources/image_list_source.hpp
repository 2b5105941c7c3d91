// Image files that a text file lists with their labels: the ImageData layer's.
#pragma once

#include <memory>

#include "caffe/data/record_source.hpp"

namespace caffe::data {

std::unique_ptr<RecordSource> MakeImageListSource(const ImageDataParameter& images,
                                                  const BatchSourceOptions& options);

}  // namespace caffe::data
