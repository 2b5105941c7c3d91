#include "caffe/data/transformers/affine.hpp"
#include "caffe/data/transformers/augmentation.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

class Rotation final : public Augmentation {
 public:
  explicit Rotation(const TransformationParameter& param)
      : most_(param.rotation()), outside_(MeanColor(param)) {
    Require(0 <= most_ && most_ <= 180, "transform_param: rotation is ", most_,
            " degrees; give 0 to 180");
  }

  void Apply(Draws& draws, Picture* picture) const override {
    Turn(draws.Uniform(-most_, most_), outside_, &picture->image);
  }

 private:
  const float most_;
  const cv::Scalar outside_;
};

}  // namespace

std::unique_ptr<Augmentation> MakeRotation(const TransformationParameter& param) {
  if (param.rotation() == 0) return nullptr;
  return std::make_unique<Rotation>(param);
}

}  // namespace caffe::data
