#include "caffe/data/transformers/augmentation.hpp"

namespace caffe::data {

std::vector<std::unique_ptr<Augmentation>> MakeAugmentations(
    const TransformationParameter& param, const AnnotatedDataParameter& annotated, bool train) {
  std::vector<std::unique_ptr<Augmentation>> steps;
  const auto add = [&](std::unique_ptr<Augmentation> step) {
    if (step != nullptr) steps.push_back(std::move(step));
  };
  // Created in testing too, so that invalid values are reported there.
  std::unique_ptr<Augmentation> crop = MakeRandomResizedCrop(param), rotation = MakeRotation(param),
                                rand_augment = MakeRandAugment(param),
                                padding = MakePadding(param);
  const bool fits = !train || crop == nullptr;
  if (train) add(std::move(crop));
  add(MakeRandomResize(param));
  add(MakeDistortion(param));
  add(MakeExpansion(param));
  add(MakeBatchSamplers(annotated, param));
  if (fits) add(MakeFit(param));
  add(MakeNoise(param));
  if (train) {
    add(std::move(rotation));
    add(std::move(rand_augment));
    add(std::move(padding));
  }
  return steps;
}

}  // namespace caffe::data
