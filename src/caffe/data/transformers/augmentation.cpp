#include "caffe/data/transformers/augmentation.hpp"

namespace caffe::data {

std::vector<std::unique_ptr<Augmentation>> MakeAugmentations(
    const TransformationParameter& param, const AnnotatedDataParameter& annotated) {
  std::vector<std::unique_ptr<Augmentation>> steps;
  const auto add = [&](std::unique_ptr<Augmentation> step) {
    if (step != nullptr) steps.push_back(std::move(step));
  };
  add(MakeRandomResize(param));
  add(MakeDistortion(param));
  add(MakeExpansion(param));
  add(MakeBatchSamplers(annotated, param));
  add(MakeFit(param));
  add(MakeNoise(param));
  return steps;
}

}  // namespace caffe::data
