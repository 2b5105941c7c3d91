// transform_param { erasing }: overwrites a random rectangle of an otherwise complete image (Zhong
// et al. 2020, arXiv 1708.04896).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "caffe/core/philox.hpp"
#include "caffe/data/parsers/image_view.hpp"
#include "caffe/data/transformers/random_part.hpp"
#include "caffe/proto/caffe.pb.h"
#include "caffe/tensor/tensor_view.hpp"

namespace caffe::data {

// Random choices depend only on `random` and the record's number; const functions are thread-safe.
class Erasing {
 public:
  // Reads the mean file for fill: NOISE. Throws InvalidArgument for numbers out of range.
  Erasing(const TransformationParameter& param, RandomStream random);

  // The rectangle for a record; empty if nothing is erased.
  std::optional<ImagePart> Choose(int height, int width, uint64_t record) const;
  // Erases in an image with subtracted mean and applied scale: writes 0 or, for fill: NOISE, (v -
  // mean of the channel) * scale, where v is drawn uniformly from 0 to 255 for each number. Both
  // layouts get the same numbers.
  void Apply(const ImageExtents& extents, Layout layout, uint64_t record, float* image) const;

 private:
  float MeanOf(int channel) const;

  const ErasingParameter param_;
  const float scale_;
  const std::vector<float> means_;  // none, one, or one per channel
  const RandomStream random_;
};

}  // namespace caffe::data
