// Images and images of labels that a text file lists: the DenseImageData layer's.
#pragma once

#include <memory>

#include "caffe/data/record_source.hpp"

namespace caffe::data {

std::unique_ptr<RecordSource> MakeImagePairSource(const DenseImageDataParameter& images,
                                                  const BatchSourceOptions& options);

}  // namespace caffe::data
