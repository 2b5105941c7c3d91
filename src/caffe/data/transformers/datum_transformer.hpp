// DatumTransformer: crop, mirror, mean and scale of TransformationParameter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "caffe/core/philox.hpp"
#include "caffe/data/parsers/datum_view.hpp"
#include "caffe/proto/caffe.pb.h"
#include "caffe/shape.hpp"

namespace caffe::data {

// out = (x - mean) * scale, cropped and mirrored. Random choices depend on (seed, stream, draw)
// alone: in training a mirror (if `mirror`) and the crop's corner; in testing the crop is central.
// Thread-safe.
class DatumTransformer {
 public:
  // Throws InvalidArgument for contradictory fields, IoError for the mean file.
  DatumTransformer(const TransformationParameter& param, bool is_training, uint64_t seed,
                   const std::string& stream);

  // (C, crop_size, crop_size), or the image's own size. Throws InvalidArgument when it is too small.
  Shape OutputShape(int channels, int height, int width) const;
  // Whether OutputShape would not throw; allocates nothing.
  bool Accepts(const DatumView& datum) const;
  // Writes OutputShape's elements to `out`.
  void Transform(const DatumView& datum, uint64_t draw, float* out) const;

 private:
  struct Placement {
    int top = 0, left = 0, height = 0, width = 0;
    bool is_mirrored = false;
  };

  Placement Place(const DatumView& datum, uint64_t draw) const;
  void CheckMean(int channels, int height, int width) const;

  const TransformationParameter param_;
  const bool is_training_;
  const RandomStream random_;
  Shape mean_shape_;
  std::vector<float> mean_;         // mean image, C,H,W
  std::vector<float> mean_values_;  // one, or one per channel
};

}  // namespace caffe::data
