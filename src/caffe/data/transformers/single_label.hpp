// Augmentations of images that have one label each: what labels in the image would not follow.
#pragma once

#include <string>

#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::data {

// Throws InvalidArgument that names the first of random_resized_crop, rotation, rand_augment,
// erasing and pad that is set: "transform_param { rotation } is for images with one label each; ...".
CAFFE_EXPORT void RefuseSingleLabelAugmentation(const TransformationParameter& param,
                                                const std::string& why_and_cure);

}  // namespace caffe::data
