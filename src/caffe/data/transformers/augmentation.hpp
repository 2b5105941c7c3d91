// Augmentations: transform an image and its boxes before crop, mean and mirror.
#pragma once

#include <memory>
#include <vector>

#include "caffe/data/transformers/picture.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::data {

// One augmentation. Apply() is thread-safe and depends only on `draws`.
class Augmentation {
 public:
  virtual ~Augmentation() = default;
  virtual void Apply(Draws& draws, Picture* picture) const = 0;
};

// True if img_rand_resize_*, rand_resize_ratio_* or *_stretch_* are on.
bool ResizesAtRandom(const TransformationParameter& param);

// Each returns null if the parameters leave the image unchanged, and throws InvalidArgument for
// values out of range.

// img_rand_resize_*, rand_resize_ratio_*, *_stretch_* (NVCaffe).
std::unique_ptr<Augmentation> MakeRandomResize(const TransformationParameter& param);
// distort_param: brightness, contrast, saturation, hue, order of channels (SSD, Liu et al. 2016,
// arXiv 1512.02325; after Howard 2013, arXiv 1312.5402).
std::unique_ptr<Augmentation> MakeDistortion(const TransformationParameter& param);
// expand_param: the image at a random position of a larger canvas (SSD, section 3.6).
std::unique_ptr<Augmentation> MakeExpansion(const TransformationParameter& param);
// annotated_data_param { batch_sampler }: a patch that satisfies one of the samplers (SSD, 2.2).
std::unique_ptr<Augmentation> MakeBatchSamplers(const AnnotatedDataParameter& annotated,
                                                const TransformationParameter& param);
// resize_param.
std::unique_ptr<Augmentation> MakeFit(const TransformationParameter& param);
// noise_param.
std::unique_ptr<Augmentation> MakeNoise(const TransformationParameter& param);
// The next four do not move boxes: they are for images with a single label
// (transformers/single_label.hpp).
// random_resized_crop (Szegedy et al. 2015, arXiv 1409.4842, section 6): the result has crop_size.
std::unique_ptr<Augmentation> MakeRandomResizedCrop(const TransformationParameter& param);
// rotation: about the centre.
std::unique_ptr<Augmentation> MakeRotation(const TransformationParameter& param);
// rand_augment (Cubuk et al. 2020, arXiv 1909.13719).
std::unique_ptr<Augmentation> MakeRandAugment(const TransformationParameter& param);
// pad: adds a border of the mean's colour, so that the position of the crop varies.
std::unique_ptr<Augmentation> MakePadding(const TransformationParameter& param);

// Returns all that are on: random resizing, distortion, expansion, sampling, resizing, noise. In
// training, random_resized_crop comes first and resize_param is skipped, so that one file serves
// training and testing; rotation, rand_augment and pad come last. In testing, these four are off.
std::vector<std::unique_ptr<Augmentation>> MakeAugmentations(
    const TransformationParameter& param, const AnnotatedDataParameter& annotated, bool train);

}  // namespace caffe::data
