// The rectangle that random_resized_crop cuts out.
#pragma once

#include "caffe/data/transformers/random_part.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::data {

// DrawPart(), and where no draw fits the largest rectangle in the centre whose ratio is in range,
// as torchvision's RandomResizedCrop.
ImagePart ChooseResizedCrop(const RandomResizedCropParameter& param, int height, int width,
                            Draws& draws);

}  // namespace caffe::data
