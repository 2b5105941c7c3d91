// Augmentations for images with a single label, which would not move labels within the image.
#pragma once

#include <string>

#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::data {

// Throws InvalidArgument if random_resized_crop, rotation, rand_augment, erasing or pad is set;
// names the first: "transform_param { rotation } is for images with one label each; ...".
CAFFE_EXPORT void RefuseSingleLabelAugmentation(const TransformationParameter& param,
                                                const std::string& why_and_cure);

}  // namespace caffe::data
