#include "caffe/data/transformers/detectnet_augmentation.hpp"

#include <algorithm>
#include <array>
#include <opencv2/imgproc.hpp>

#include "caffe/error.hpp"

namespace caffe::data {
namespace {

void Resize(cv::Size size, cv::Mat* image, std::vector<PixelBox>* boxes) {
  if (image->size() == size) return;
  const float x = static_cast<float>(size.width) / static_cast<float>(image->cols);
  const float y = static_cast<float>(size.height) / static_cast<float>(image->rows);
  cv::Mat resized;
  cv::resize(*image, resized, size, 0, 0, cv::INTER_CUBIC);
  *image = resized;
  for (PixelBox& box : *boxes) {
    box.rect = {box.rect.x * x, box.rect.y * y, box.rect.width * x, box.rect.height * y};
  }
}

}  // namespace

DetectNetAugmentation::DetectNetAugmentation(const DetectNetAugmentationParameter& param,
                                             cv::Size size, const std::vector<float>& means)
    : param_(param), size_(size) {
  Require(0 < param.scale_min() && param.scale_min() <= param.scale_max(),
          "detectnet_augmentation_param: scale_min is ", param.scale_min(), " and scale_max ",
          param.scale_max(), "; give 0 < scale_min <= scale_max");
  Require(0 <= param.desaturation_max() && param.desaturation_max() <= 1,
          "detectnet_augmentation_param: desaturation_max is ", param.desaturation_max(),
          "; it must be between 0 and 1");
  Require(means.size() <= 1 || means.size() == 3, "transform_param has ", means.size(),
          " mean_value entries; give none, one, or one for each of the 3 channels");
  for (int channel = 0; channel < 3 && !means.empty(); ++channel) {
    mean_[channel] = means[means.size() == 1 ? 0 : channel];
  }
}

void DetectNetAugmentation::Apply(Draws& draws, cv::Mat* image,
                                  std::vector<PixelBox>* boxes) const {
  ChangeColors(draws, image);
  *image -= mean_;
  Flip(draws, image, boxes);
  Scale(draws, image, boxes);
  Rotate(draws, image, boxes);
  Crop(draws, image, boxes);
}

void DetectNetAugmentation::ApplyWithoutDraws(cv::Mat* image, std::vector<PixelBox>* boxes) const {
  *image -= mean_;
  Resize(size_, image, boxes);
}

// Works on float HSV: hue in degrees, saturation from 0 to 1.
void DetectNetAugmentation::ChangeColors(Draws& draws, cv::Mat* image) const {
  float turn = 0, kept = 1;
  if (draws.Chance(param_.hue_rotation_prob())) {
    turn = draws.Uniform(-param_.hue_rotation(), param_.hue_rotation());
  }
  if (draws.Chance(param_.desaturation_prob())) {
    kept = 1 - draws.Uniform(0, param_.desaturation_max());
  }
  if (turn == 0 && kept == 1) return;
  cv::Mat hsv;
  cv::cvtColor(*image, hsv, cv::COLOR_BGR2HSV);
  auto* pixels = hsv.ptr<cv::Vec3f>();  // contiguous, because it was newly allocated
  for (size_t i = 0; i < hsv.total(); ++i) {
    float& hue = pixels[i][0];
    hue += turn;
    hue += hue < 0 ? 360.0f : hue >= 360 ? -360.0f : 0.0f;
    pixels[i][1] *= kept;
  }
  cv::cvtColor(hsv, *image, cv::COLOR_HSV2BGR);
}

void DetectNetAugmentation::Flip(Draws& draws, cv::Mat* image, std::vector<PixelBox>* boxes) const {
  if (!draws.Chance(param_.flip_prob())) return;
  cv::Mat flipped;
  cv::flip(*image, flipped, 1);
  *image = flipped;
  for (PixelBox& box : *boxes) {
    box.rect.x = static_cast<float>(image->cols) - box.rect.x - box.rect.width;
  }
}

void DetectNetAugmentation::Scale(Draws& draws, cv::Mat* image,
                                  std::vector<PixelBox>* boxes) const {
  if (!draws.Chance(param_.scale_prob())) return;
  const float factor = draws.Uniform(param_.scale_min(), param_.scale_max());
  Resize({std::max(1, cvRound(static_cast<float>(image->cols) * factor)),
          std::max(1, cvRound(static_cast<float>(image->rows) * factor))},
         image, boxes);
}

// Rotates about the centre. A box becomes the bounding box of its rotated corners.
void DetectNetAugmentation::Rotate(Draws& draws, cv::Mat* image,
                                   std::vector<PixelBox>* boxes) const {
  if (!draws.Chance(param_.rotation_prob())) return;
  const float degrees = draws.Uniform(-param_.max_rotate_degree(), param_.max_rotate_degree());
  const cv::Point2f center(static_cast<float>(image->cols) / 2,
                           static_cast<float>(image->rows) / 2);
  const cv::Matx23d turn = cv::getRotationMatrix2D(center, degrees, 1);
  cv::Mat turned;
  cv::warpAffine(*image, turned, turn, image->size(), cv::INTER_CUBIC);
  *image = turned;
  for (PixelBox& box : *boxes) {
    const cv::Point2f first = box.rect.tl(), last = box.rect.br();
    const std::array<cv::Point2f, 4> corners = {first, last, cv::Point2f(first.x, last.y),
                                                cv::Point2f(last.x, first.y)};
    float left = 0, top = 0, right = 0, bottom = 0;
    for (size_t i = 0; i < corners.size(); ++i) {
      const auto x =
          static_cast<float>(turn(0, 0) * corners[i].x + turn(0, 1) * corners[i].y + turn(0, 2));
      const auto y =
          static_cast<float>(turn(1, 0) * corners[i].x + turn(1, 1) * corners[i].y + turn(1, 2));
      left = i == 0 ? x : std::min(left, x), right = i == 0 ? x : std::max(right, x);
      top = i == 0 ? y : std::min(top, y), bottom = i == 0 ? y : std::max(bottom, y);
    }
    box.rect = {left, top, right - left, bottom - top};
  }
}

// Crops a window of the net's size at a random position of the image, or places a smaller image at
// a random position of the window, and adds the shift. The area outside the image has the value of
// the mean.
void DetectNetAugmentation::Crop(Draws& draws, cv::Mat* image, std::vector<PixelBox>* boxes) const {
  if (!draws.Chance(param_.crop_prob())) return Resize(size_, image, boxes);
  const auto place = [&](int extent, int window, uint32_t shift) {
    const auto spare = static_cast<float>(extent - window), most = static_cast<float>(shift);
    return cvFloor(draws.Uniform(0, 1) * spare + draws.Uniform(-most, most) + 0.5);
  };
  const int x = place(image->cols, size_.width, param_.shift_x());
  const int y = place(image->rows, size_.height, param_.shift_y());
  cv::Mat window(size_, image->type(), cv::Scalar());
  const cv::Rect seen = cv::Rect({x, y}, size_) & cv::Rect({0, 0}, image->size());
  if (!seen.empty()) (*image)(seen).copyTo(window(seen - cv::Point(x, y)));
  *image = window;
  for (PixelBox& box : *boxes)
    box.rect -= cv::Point2f(static_cast<float>(x), static_cast<float>(y));
}

}  // namespace caffe::data
