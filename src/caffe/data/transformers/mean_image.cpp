#include "caffe/data/transformers/mean_image.hpp"

#include <numeric>

#include "caffe/error.hpp"
#include "caffe/io/binary_format.hpp"
#include "caffe/io/blob_proto.hpp"

namespace caffe::data {

MeanImage MeanImageOf(const BlobProto& blob) {
  const Shape shape = ShapeOf(blob);
  const int axes = shape.num_axes();
  Require(axes == 3 || (axes == 4 && shape[0] == 1), "a mean of shape ", shape,
          "; it has to be one image (1xCxHxW)");
  Require(shape.count() > 0, "a mean of shape ", shape, " has no pixels");
  return {{static_cast<int>(shape[axes - 3]), static_cast<int>(shape[axes - 2]),
           static_cast<int>(shape[axes - 1])},
          ReadBlobFloats(blob)};
}

MeanImage ReadMeanImage(const std::string& file) {
  return WithContext("mean_file", [&] {
    BlobProto blob;
    ReadBinaryProto(file, &blob);
    return WithContext(file, [&] { return MeanImageOf(blob); });
  });
}

MeanImage CentreOf(const MeanImage& mean, int height, int width) {
  const ImageExtents& whole = mean.extents;
  CAFFE_ASSERT(height <= whole.height && width <= whole.width, height, "x", width);
  const int top = (whole.height - height) / 2, left = (whole.width - width) / 2;
  MeanImage centre{.extents = {whole.channels, height, width}, .values = {}};
  for (int channel = 0; channel < whole.channels; ++channel) {
    for (int row = 0; row < height; ++row) {
      const int64_t source_row = int64_t{channel} * whole.height + top + row;
      const auto begin = mean.values.begin() + source_row * whole.width + left;
      centre.values.insert(centre.values.end(), begin, begin + width);
    }
  }
  return centre;
}

std::vector<float> ChannelMeans(const TransformationParameter& param) {
  if (!param.has_mean_file()) return {param.mean_value().begin(), param.mean_value().end()};
  const MeanImage mean = ReadMeanImage(param.mean_file());
  const int64_t plane = int64_t{mean.extents.height} * mean.extents.width;
  std::vector<float> means;
  for (int channel = 0; channel < mean.extents.channels; ++channel) {
    const auto begin = mean.values.begin() + channel * plane;
    means.push_back(static_cast<float>(std::accumulate(begin, begin + plane, 0.0) /
                                       static_cast<double>(plane)));
  }
  return means;
}

}  // namespace caffe::data
