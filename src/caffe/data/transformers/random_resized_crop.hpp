// Chooses the rectangle of random_resized_crop.
#pragma once

#include "caffe/data/transformers/random_part.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::data {

// Calls DrawPart(). If no draw fits, returns the largest central rectangle with a ratio in range,
// as in torchvision's RandomResizedCrop.
ImagePart ChooseResizedCrop(const RandomResizedCropParameter& param, int height, int width,
                            Draws& draws);

}  // namespace caffe::data
