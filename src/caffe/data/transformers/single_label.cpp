#include "caffe/data/transformers/single_label.hpp"

#include "caffe/error.hpp"

namespace caffe::data {

void RefuseSingleLabelAugmentation(const TransformationParameter& param,
                                   const std::string& why_and_cure) {
  const char* const field = param.has_random_resized_crop() ? "random_resized_crop"
                            : param.rotation() != 0         ? "rotation"
                            : param.has_rand_augment()      ? "rand_augment"
                            : param.has_erasing()           ? "erasing"
                            : param.pad() != 0              ? "pad"
                                                            : nullptr;
  if (field == nullptr) return;
  throw InvalidArgument(
      StrCat("transform_param { ", field, " } is for images with one label each; ", why_and_cure));
}

}  // namespace caffe::data
