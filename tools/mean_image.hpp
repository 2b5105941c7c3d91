// Computes the mean image of a set.
#pragma once

#include <cstdint>
#include <vector>

#include "caffe/data/parsers/image_view.hpp"
#include "caffe/error.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::tools {

// Sums over all images, stored as planes.
class MeanImage {
 public:
  void Add(const data::ImageView& image) {
    const data::ImageExtents& extents = image.extents;
    if (count_ == 0) {
      extents_ = extents;
      sums_.resize(extents.count());
    }
    Require(extents == extents_, "an image of ", extents, ", but the first one has ", extents_,
            "; convert the set again with --resize_height and --resize_width");
    const size_t plane = sums_.size() / extents.channels;
    for (int channel = 0; channel < extents.channels; ++channel) {
      double* sums = sums_.data() + channel * plane;
      if (image.floats != nullptr) {
        AddPlane(image.floats + channel * plane, 1, plane, sums);
      } else if (image.interleaved) {
        AddPlane(image.bytes + channel, extents.channels, plane, sums);
      } else {
        AddPlane(image.bytes + channel * plane, 1, plane, sums);
      }
    }
    ++count_;
  }

  // In the format that every Caffe reads.
  BlobProto ToProto() const {
    BlobProto blob;
    blob.set_num(1);
    blob.set_channels(extents_.channels);
    blob.set_height(extents_.height);
    blob.set_width(extents_.width);
    for (const double sum : sums_) blob.add_data(static_cast<float>(sum / count_));
    return blob;
  }

  const data::ImageExtents& extents() const { return extents_; }
  double ChannelMean(int channel) const {
    const size_t plane = sums_.size() / extents_.channels;
    double total = 0;
    for (size_t i = 0; i < plane; ++i) total += sums_[channel * plane + i];
    return total / (static_cast<double>(plane) * count_);
  }

 private:
  template <typename T>
  static void AddPlane(const T* values, size_t step, size_t count, double* sums) {
    for (size_t i = 0; i < count; ++i) sums[i] += static_cast<double>(values[i * step]);
  }

  data::ImageExtents extents_;
  std::vector<double> sums_;
  int64_t count_ = 0;
};

}  // namespace caffe::tools
