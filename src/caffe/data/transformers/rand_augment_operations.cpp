#include "caffe/data/transformers/rand_augment_operations.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "caffe/data/transformers/affine.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

using ByteMap = std::array<uint8_t, 256>;

template <typename Fn>
ByteMap MapOf(const Fn& fn) {
  ByteMap map;
  for (int i = 0; i < 256; ++i) map[i] = static_cast<uint8_t>(fn(i));
  return map;
}

// Calls fn(pixel, changed pixel) for each pixel.
template <typename Fn>
void ForEachPixel(cv::Mat* image, const Fn& fn) {
  cv::Mat changed(image->size(), image->type());
  const int channels = image->channels();
  for (int row = 0; row < image->rows; ++row) {
    const uint8_t* x = image->ptr<uint8_t>(row);
    uint8_t* y = changed.ptr<uint8_t>(row);
    for (int i = 0; i < image->cols; ++i) fn(x + i * channels, y + i * channels);
  }
  *image = changed;
}

// Replaces each byte by its channel's map.
void MapBytes(const std::array<ByteMap, 3>& maps, cv::Mat* image) {
  if (image->channels() == 1) {
    return ForEachPixel(image, [&](const uint8_t* x, uint8_t* y) { y[0] = maps[0][x[0]]; });
  }
  ForEachPixel(image, [&](const uint8_t* x, uint8_t* y) {
    for (int c = 0; c < 3; ++c) y[c] = maps[c][x[c]];
  });
}

void MapBytes(const ByteMap& map, cv::Mat* image) {
  MapBytes({map, map, map}, image);
}

// from + factor * (to - from), limited to a byte, as in PIL's Image.blend.
uint8_t Blend(int from, int to, float factor) {
  const float value = static_cast<float>(from) + factor * static_cast<float>(to - from);
  return static_cast<uint8_t>(std::clamp(value, 0.0f, 255.0f));
}

// Luma of ITU-R BT.601, in PIL's fixed-point arithmetic.
int GrayOf(const uint8_t* bgr) {
  return (19595 * bgr[2] + 38470 * bgr[1] + 7471 * bgr[0] + 0x8000) >> 16;
}

int GrayMean(const cv::Mat& image) {
  const bool is_color = image.channels() == 3;
  int64_t sum = 0;
  for (int row = 0; row < image.rows; ++row) {
    const uint8_t* x = image.ptr<uint8_t>(row);
    for (int i = 0; i < image.cols; ++i) sum += is_color ? GrayOf(x + 3 * i) : x[i];
  }
  return static_cast<int>(static_cast<double>(sum) / static_cast<double>(image.total()) + 0.5);
}

void ChangeColor(float factor, cv::Mat* image) {
  if (image->channels() == 1) return;
  ForEachPixel(image, [&](const uint8_t* x, uint8_t* y) {
    const int gray = GrayOf(x);
    for (int c = 0; c < 3; ++c) y[c] = Blend(gray, x[c], factor);
  });
}

// Extrapolates from a smoothed image, which weights a pixel by 5 and its neighbours by 1. The
// border is unchanged.
void Sharpen(float factor, cv::Mat* image) {
  constexpr int kWeights = 13;
  cv::Mat changed = image->clone();
  const int channels = image->channels(), count = (image->cols - 1) * channels;
  for (int row = 1; row + 1 < image->rows; ++row) {
    const uint8_t *above = image->ptr<uint8_t>(row - 1), *x = image->ptr<uint8_t>(row),
                  *below = image->ptr<uint8_t>(row + 1);
    uint8_t* y = changed.ptr<uint8_t>(row);
    for (int i = channels; i < count; ++i) {
      const int left = i - channels, right = i + channels;
      const int sum = above[left] + above[i] + above[right] + x[left] + 5 * x[i] + x[right] +
                      below[left] + below[i] + below[right];
      y[i] = Blend((2 * sum + kWeights) / (2 * kWeights), x[i], factor);
    }
  }
  *image = changed;
}

// fn(histogram) returns the map of each channel.
template <typename Fn>
void MapByHistogram(cv::Mat* image, const Fn& fn) {
  std::array<std::array<int, 256>, 3> counts{};
  const int channels = image->channels();
  for (int row = 0; row < image->rows; ++row) {
    const uint8_t* x = image->ptr<uint8_t>(row);
    for (int i = 0; i < image->cols; ++i) {
      for (int c = 0; c < channels; ++c) ++counts[c][x[i * channels + c]];
    }
  }
  std::array<ByteMap, 3> maps;
  for (int c = 0; c < channels; ++c) maps[c] = fn(counts[c]);
  MapBytes(maps, image);
}

// Stretches the range from the darkest to the brightest value to 0 to 255.
ByteMap FullContrast(const std::array<int, 256>& counts) {
  int low = 0, high = 255;
  while (low < 255 && counts[low] == 0) ++low;
  while (high > 0 && counts[high] == 0) --high;
  if (high <= low) return MapOf([](int x) { return x; });
  return MapOf([&](int x) { return std::clamp((x - low) * 255 / (high - low), 0, 255); });
}

// Equalises the histogram, as in PIL's ImageOps.equalize.
ByteMap Equalized(const std::array<int, 256>& counts) {
  int last = 255, pixels = 0;
  while (last > 0 && counts[last] == 0) --last;
  for (const int count : counts) pixels += count;
  const int step = (pixels - counts[last]) / 255;
  if (step == 0) return MapOf([](int x) { return x; });
  ByteMap map;
  int sum = step / 2;
  for (int i = 0; i < 256; ++i) {
    map[i] = static_cast<uint8_t>(std::min(sum / step, 255));
    sum += counts[i];
  }
  return map;
}

}  // namespace

bool HasSign(RandOperation operation) {
  return RandOperation::kShearX <= operation && operation <= RandOperation::kSharpness;
}

double StrengthOf(RandOperation operation, int magnitude, int height, int width) {
  const double part = static_cast<double>(magnitude) / kMostMagnitude;
  constexpr double kMostShift = 150.0 / 331.0;
  switch (operation) {
    case RandOperation::kShearX:
    case RandOperation::kShearY:
      return 0.3 * part;
    case RandOperation::kTranslateX:
      return kMostShift * width * part;
    case RandOperation::kTranslateY:
      return kMostShift * height * part;
    case RandOperation::kRotate:
      return 30 * part;
    case RandOperation::kBrightness:
    case RandOperation::kColor:
    case RandOperation::kContrast:
    case RandOperation::kSharpness:
      return 0.9 * part;
    case RandOperation::kPosterize:
      return 8 - std::nearbyint(4 * part);  // halves round to even, as in torch.round
    case RandOperation::kSolarize:
      return 255 - 255 * part;
    default:
      return 0;
  }
}

void ApplyRandOperation(RandOperation operation, double strength, const cv::Scalar& outside,
                        cv::Mat* image) {
  CAFFE_ASSERT(image->channels() == 1 || image->channels() == 3, image->channels());
  const auto factor = static_cast<float>(1 + strength);
  switch (operation) {
    case RandOperation::kIdentity:
      return;
    case RandOperation::kShearX:  // relative to the upper left corner of the first pixel
      return ApplyAffine({.b = strength, .c = strength / 2}, outside, image);
    case RandOperation::kShearY:
      return ApplyAffine({.d = strength, .f = strength / 2}, outside, image);
    case RandOperation::kTranslateX:
      return ApplyAffine({.c = -std::trunc(strength)}, outside, image);
    case RandOperation::kTranslateY:
      return ApplyAffine({.f = -std::trunc(strength)}, outside, image);
    case RandOperation::kRotate:
      return Turn(strength, outside, image);
    case RandOperation::kBrightness:
      return MapBytes(MapOf([&](int x) { return Blend(0, x, factor); }), image);
    case RandOperation::kColor:
      return ChangeColor(factor, image);
    case RandOperation::kContrast: {
      const int mean = GrayMean(*image);
      return MapBytes(MapOf([&](int x) { return Blend(mean, x, factor); }), image);
    }
    case RandOperation::kSharpness:
      return Sharpen(factor, image);
    case RandOperation::kPosterize: {
      const int bits = 8 - static_cast<int>(strength);
      return MapBytes(MapOf([&](int x) { return x >> bits << bits; }), image);
    }
    case RandOperation::kSolarize:
      return MapBytes(MapOf([&](int x) { return x < strength ? x : 255 - x; }), image);
    case RandOperation::kAutoContrast:
      return MapByHistogram(image, FullContrast);
    case RandOperation::kEqualize:
      return MapByHistogram(image, Equalized);
  }
}

}  // namespace caffe::data
