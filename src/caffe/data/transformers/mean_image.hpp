// What transform_param subtracts: a mean image or mean values.
#pragma once

#include <vector>

#include "caffe/data/parsers/image_view.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::data {

struct MeanImage {
  ImageExtents extents;
  std::vector<float> values;  // in planes
};

// Throws InvalidArgument where it is not one image.
MeanImage MeanImageOf(const BlobProto& blob);
// Reads mean_file. Throws IoError or InvalidArgument naming it.
MeanImage ReadMeanImage(const std::string& file);
// The part of that height and width in the middle of `mean`, which must not be smaller.
MeanImage CentreOf(const MeanImage& mean, int height, int width);

// The mean of each channel: mean_value as it stands (none, one, or one per channel), or averages
// over mean_file.
std::vector<float> ChannelMeans(const TransformationParameter& param);

}  // namespace caffe::data
