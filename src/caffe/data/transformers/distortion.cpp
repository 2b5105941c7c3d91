#include <array>
#include <opencv2/imgproc.hpp>

#include "caffe/data/transformers/augmentation.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

class Distortion final : public Augmentation {
 public:
  explicit Distortion(const DistortionParameter& param) : param_(param) {
    const auto check = [](const char* name, float lower, float upper) {
      Require(0 <= lower && lower <= upper, "distort_param: ", name, "_lower is ", lower, " and ",
              name, "_upper ", upper, "; give 0 <= lower <= upper");
    };
    check("contrast", param.contrast_lower(), param.contrast_upper());
    check("saturation", param.saturation_lower(), param.saturation_upper());
    Require(param.brightness_delta() >= 0 && param.hue_delta() >= 0,
            "distort_param: brightness_delta is ", param.brightness_delta(), " and hue_delta ",
            param.hue_delta(), "; neither may be negative");
  }

  void Apply(Draws& draws, Picture* picture) const override {
    cv::Mat& image = picture->image;
    Require(image.channels() == 3, "distort_param: an image of ", image.channels(),
            " channels; set force_color");
    const bool contrast_first = draws.Chance(0.5f);
    ChangeBrightness(draws, &image);
    if (contrast_first) ChangeContrast(draws, &image);
    ChangeSaturation(draws, &image);
    ChangeHue(draws, &image);
    if (!contrast_first) ChangeContrast(draws, &image);
    ShuffleChannels(draws, &image);
  }

 private:
  // y = factor * x + offset, limited to a byte; copies the image, because the pixels may belong to
  // the decoder.
  static void Linear(float factor, float offset, cv::Mat* image) {
    cv::Mat changed;
    image->convertTo(changed, -1, factor, offset);
    *image = changed;
  }

  // Calls fn(channels) on hue (0 to 180), saturation and value.
  template <typename Fn>
  static void InHsv(cv::Mat* image, Fn&& fn) {
    cv::Mat hsv;
    cv::cvtColor(*image, hsv, cv::COLOR_BGR2HSV);
    std::array<cv::Mat, 3> channels;
    cv::split(hsv, channels.data());
    fn(channels);
    cv::merge(channels.data(), channels.size(), hsv);
    cv::Mat changed;
    cv::cvtColor(hsv, changed, cv::COLOR_HSV2BGR);
    *image = changed;
  }

  void ChangeBrightness(Draws& draws, cv::Mat* image) const {
    if (!draws.Chance(param_.brightness_prob())) return;
    Linear(1, draws.Uniform(-param_.brightness_delta(), param_.brightness_delta()), image);
  }
  void ChangeContrast(Draws& draws, cv::Mat* image) const {
    if (!draws.Chance(param_.contrast_prob())) return;
    Linear(draws.Uniform(param_.contrast_lower(), param_.contrast_upper()), 0, image);
  }
  void ChangeSaturation(Draws& draws, cv::Mat* image) const {
    if (!draws.Chance(param_.saturation_prob())) return;
    const float factor = draws.Uniform(param_.saturation_lower(), param_.saturation_upper());
    InHsv(image, [&](std::array<cv::Mat, 3>& hsv) { hsv[1].convertTo(hsv[1], -1, factor, 0); });
  }
  void ChangeHue(Draws& draws, cv::Mat* image) const {
    if (!draws.Chance(param_.hue_prob())) return;
    const float delta = draws.Uniform(-param_.hue_delta(), param_.hue_delta());
    InHsv(image, [&](std::array<cv::Mat, 3>& hsv) { hsv[0].convertTo(hsv[0], -1, 1, delta); });
  }
  void ShuffleChannels(Draws& draws, cv::Mat* image) const {
    if (!draws.Chance(param_.random_order_prob())) return;
    std::array<cv::Mat, 3> channels;
    cv::split(*image, channels.data());
    for (int i = 2; i > 0; --i) std::swap(channels[i], channels[draws.Below(i + 1)]);
    cv::Mat changed;
    cv::merge(channels.data(), channels.size(), changed);
    *image = changed;
  }

  const DistortionParameter param_;
};

}  // namespace

std::unique_ptr<Augmentation> MakeDistortion(const TransformationParameter& param) {
  if (!param.has_distort_param()) return nullptr;
  return std::make_unique<Distortion>(param.distort_param());
}

}  // namespace caffe::data
