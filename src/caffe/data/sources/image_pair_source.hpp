// Images and images of labels listed in a text file, for DenseImageData, ImageSegData and
// ImageLabelmapData.
#pragma once

#include <memory>

#include "caffe/data/image_pair_loader.hpp"
#include "caffe/data/record_source.hpp"

namespace caffe::data {

std::unique_ptr<RecordSource> MakeImagePairSource(const DenseImageDataParameter& images,
                                                  const BatchSourceOptions& options,
                                                  const ImagePairRules& rules = {});
// With the options of ImageData, as in DeepLab and HED.
std::unique_ptr<RecordSource> MakeImagePairSource(const ImageDataParameter& images,
                                                  const BatchSourceOptions& options,
                                                  ImagePairRules rules);

}  // namespace caffe::data
