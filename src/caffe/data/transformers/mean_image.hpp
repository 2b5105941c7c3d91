// The mean of transform_param: a mean image or mean values.
#pragma once

#include <vector>

#include "caffe/data/parsers/image_view.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::data {

struct MeanImage {
  ImageExtents extents;
  std::vector<float> values;  // in planes
};

// Throws InvalidArgument if it is not a single image.
MeanImage MeanImageOf(const BlobProto& blob);
// Reads mean_file. Throws IoError or InvalidArgument naming the file.
MeanImage ReadMeanImage(const std::string& file);
// The centre part, of that height and width, of `mean`, which must not be smaller.
MeanImage CentreOf(const MeanImage& mean, int height, int width);

// The mean of each channel: mean_value unchanged (none, one, or one per channel), or the averages
// over mean_file.
std::vector<float> ChannelMeans(const TransformationParameter& param);

}  // namespace caffe::data
