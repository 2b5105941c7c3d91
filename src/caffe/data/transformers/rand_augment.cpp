#include "caffe/data/transformers/affine.hpp"
#include "caffe/data/transformers/augmentation.hpp"
#include "caffe/data/transformers/rand_augment_operations.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

class RandAugment final : public Augmentation {
 public:
  explicit RandAugment(const TransformationParameter& param)
      : param_(param.rand_augment()), outside_(MeanColor(param)) {
    Require(0 <= param_.magnitude() && param_.magnitude() <= kMostMagnitude,
            "rand_augment: magnitude is ", param_.magnitude(), "; give 0 to ", kMostMagnitude);
    Require(0 <= param_.operations() && param_.operations() <= kNumRandOperations,
            "rand_augment: operations is ", param_.operations(), "; give 0 to ",
            kNumRandOperations);
  }

  void Apply(Draws& draws, Picture* picture) const override {
    cv::Mat* image = &picture->image;
    Require(image->channels() == 1 || image->channels() == 3, "rand_augment: an image of ",
            image->channels(), " channels; set force_color or force_gray");
    for (int i = 0; i < param_.operations(); ++i) {
      const auto operation = static_cast<RandOperation>(draws.Below(kNumRandOperations));
      const double strength = StrengthOf(operation, param_.magnitude(), image->rows, image->cols);
      const bool is_negative = HasSign(operation) && draws.Chance(0.5f);
      ApplyRandOperation(operation, is_negative ? -strength : strength, outside_, image);
    }
  }

 private:
  const RandAugmentParameter param_;
  const cv::Scalar outside_;
};

}  // namespace

std::unique_ptr<Augmentation> MakeRandAugment(const TransformationParameter& param) {
  if (!param.has_rand_augment()) return nullptr;
  return std::make_unique<RandAugment>(param);
}

}  // namespace caffe::data
