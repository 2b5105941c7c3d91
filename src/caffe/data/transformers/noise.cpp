#include <array>
#include <opencv2/imgproc.hpp>

#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/data/transformers/augmentation.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

// Calls fn(lightness) on the lightness of a colour image (CIE L*a*b*), or on a grey image itself.
template <typename Fn>
void OnLightness(cv::Mat* image, Fn&& fn) {
  if (image->channels() == 1) {
    cv::Mat changed = image->clone();
    fn(changed);
    *image = changed;
    return;
  }
  cv::Mat lab, changed;
  cv::cvtColor(*image, lab, cv::COLOR_BGR2Lab);
  std::array<cv::Mat, 3> channels;
  cv::split(lab, channels.data());
  fn(channels[0]);
  cv::merge(channels.data(), channels.size(), lab);
  cv::cvtColor(lab, changed, cv::COLOR_Lab2BGR);
  *image = changed;
}

template <typename Fn>
void Filter(cv::Mat* image, Fn&& fn) {
  cv::Mat changed;
  fn(*image, changed);
  *image = changed;
}

class Noise final : public Augmentation {
 public:
  explicit Noise(const NoiseParameter& param) : param_(param) {
    Require(param.jpeg() <= 100, "noise_param: jpeg is ", param.jpeg(),
            "; the quality is at most 100");
    const SaltPepperParameter& salt = param.saltpepper_param();
    Require(salt.fraction() >= 0 && salt.fraction() <= 1, "saltpepper_param: fraction is ",
            salt.fraction(), "; it must be from 0 to 1");
  }

  void Apply(Draws& draws, Picture* picture) const override {
    cv::Mat* image = &picture->image;
    const bool is_color = image->channels() == 3;
    Require(
        is_color || !(param_.convert_to_hsv() || param_.convert_to_lab()),
        "noise_param: convert_to_hsv and convert_to_lab need images of 3 channels, this one has ",
        image->channels());
    if (param_.decolorize() && is_color) Decolorize(image);
    if (param_.gauss_blur()) {
      Filter(image, [](const cv::Mat& x, cv::Mat& y) {
        cv::GaussianBlur(x, y, cv::Size(7, 7), 1.5, 1.5);
      });
    }
    if (param_.hist_eq()) OnLightness(image, [](cv::Mat& x) { cv::equalizeHist(x, x); });
    if (param_.clahe()) {
      OnLightness(image, [](cv::Mat& x) { cv::createCLAHE(4)->apply(x, x); });
    }
    if (param_.jpeg() > 0) RoundTrip(image);
    if (param_.erode()) {
      Filter(image, [](const cv::Mat& x, cv::Mat& y) {
        cv::erode(x, y, cv::getStructuringElement(cv::MORPH_ELLIPSE, cv::Size(3, 3)));
      });
    }
    if (param_.posterize()) Posterize(image);
    if (param_.inverse()) {
      Filter(image, [](const cv::Mat& x, cv::Mat& y) { cv::bitwise_not(x, y); });
    }
    if (param_.saltpepper()) AddSaltAndPepper(draws, image);
    if (param_.convert_to_hsv()) Convert(cv::COLOR_BGR2HSV, image);
    if (param_.convert_to_lab()) Convert(cv::COLOR_BGR2Lab, image);
  }

 private:
  static void Convert(int code, cv::Mat* image) {
    Filter(image, [&](const cv::Mat& x, cv::Mat& y) { cv::cvtColor(x, y, code); });
  }

  static void Decolorize(cv::Mat* image) {
    Convert(cv::COLOR_BGR2GRAY, image);
    Convert(cv::COLOR_GRAY2BGR, image);
  }

  // Compresses and decompresses the image.
  void RoundTrip(cv::Mat* image) const {
    const int channels = image->channels();
    const Image pixels{
        {channels, image->rows, image->cols},
        std::vector<uint8_t>(image->data, image->data + image->total() * image->elemSize())};
    const Image decoded = DecodeImage(EncodeJpegImage(pixels, static_cast<int>(param_.jpeg())),
                                      channels == 1 ? ColorMode::kGray : ColorMode::kColor);
    *image = cv::Mat(image->rows, image->cols, image->type(),
                     const_cast<uint8_t*>(decoded.pixels.data()))
                 .clone();
  }

  // Reduces each channel to four levels.
  static void Posterize(cv::Mat* image) {
    cv::Mat levels(1, 256, CV_8U);
    for (int i = 0; i < 256; ++i) levels.at<uint8_t>(i) = static_cast<uint8_t>(i / 64 * 64 + 32);
    Filter(image, [&](const cv::Mat& x, cv::Mat& y) { cv::LUT(x, levels, y); });
  }

  void AddSaltAndPepper(Draws& draws, cv::Mat* image) const {
    const SaltPepperParameter& salt = param_.saltpepper_param();
    cv::Mat changed = image->clone();
    const auto pixels = static_cast<int>(image->total());
    const int count = static_cast<int>(salt.fraction() * static_cast<float>(pixels));
    const int channels = image->channels();
    for (int i = 0; i < count; ++i) {
      uint8_t* pixel = changed.data + static_cast<size_t>(draws.Below(pixels)) * channels;
      const uint8_t grain = draws.Chance(0.5f) ? 255 : 0;
      for (int channel = 0; channel < channels; ++channel) {
        const bool has_value = channel < salt.value_size();
        pixel[channel] = has_value ? static_cast<uint8_t>(salt.value(channel)) : grain;
      }
    }
    *image = changed;
  }

  const NoiseParameter param_;
};

}  // namespace

std::unique_ptr<Augmentation> MakeNoise(const TransformationParameter& param) {
  if (!param.has_noise_param()) return nullptr;
  return std::make_unique<Noise>(param.noise_param());
}

}  // namespace caffe::data
