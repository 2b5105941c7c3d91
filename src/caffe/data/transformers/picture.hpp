// A decoded image and its objects, as passed through the augmentations.
#pragma once

#include <opencv2/core.hpp>
#include <vector>

#include "caffe/data/transformers/draws.hpp"
#include "caffe/data/transformers/object_box.hpp"

namespace caffe::data {

struct Picture {
  cv::Mat image;  // interleaved bytes
  std::vector<ObjectBox> boxes;
};

}  // namespace caffe::data
