#include "tools/caffe/class_mask.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace caffe::tools {
namespace {

// Linear interpolation between two of the net's pixels, where `share` is the weight of the second.
// Not seen: the pixel lies outside of the net's input.
struct Between {
  int first = 0, second = 0;
  float share = 0;
  bool is_seen = false;
};

// One entry for each of the image's pixels along one axis.
std::vector<Between> Along(int pixels, double start, double extent, int net_pixels) {
  std::vector<Between> places(pixels);
  for (int i = 0; i < pixels; ++i) {
    const double part = (i + 0.5 - start) / extent;
    if (part < 0 || part > 1) continue;
    const double at = std::clamp(part * net_pixels - 0.5, 0.0, net_pixels - 1.0);
    const int first = static_cast<int>(at);
    places[i] = {first, std::min(first + 1, net_pixels - 1), static_cast<float>(at - first), true};
  }
  return places;
}

float Mixed(const float* plane, int width, const Between& y, const Between& x) {
  const float* const upper = plane + int64_t{y.first} * width;
  const float* const lower = plane + int64_t{y.second} * width;
  const auto along = [&](const float* row) {
    return row[x.first] + x.share * (row[x.second] - row[x.first]);
  };
  return along(upper) + y.share * (along(lower) - along(upper));
}

uint8_t Likeliest(const ClassScores& scores, const Between& y, const Between& x) {
  const int64_t plane = int64_t{scores.height} * scores.width;
  int best = 0;
  float highest = Mixed(scores.values, scores.width, y, x);
  for (int label = 1; label < scores.classes; ++label) {
    const float score = Mixed(scores.values + label * plane, scores.width, y, x);
    const bool is_first_number = std::isnan(highest) && !std::isnan(score);
    if (!(score > highest) && !is_first_number) continue;
    highest = score;
    best = label;
  }
  return static_cast<uint8_t>(best);
}

using Color = std::array<float, 3>;  // blue, green, red

// Steps of the golden ratio keep hues apart for any number of classes.
Color ColorOf(int label) {
  constexpr double kGoldenRatio = 0.618034, kStrength = 0.8, kBrightness = 240;
  const double hue = std::fmod(label * kGoldenRatio, 1) * 6;
  const auto channel = [&](int turn) {
    const double k = std::fmod(turn + hue, 6);
    const double depth = std::clamp(std::min(k, 4 - k), 0.0, 1.0);
    return static_cast<float>(kBrightness * (1 - kStrength * depth));
  };
  return {channel(1), channel(3), channel(5)};
}

}  // namespace

std::vector<uint8_t> ClassMask(const ClassScores& scores, const data::ImageExtents& image,
                               const data::SeenPart& seen) {
  const auto rows = Along(image.height, seen.top, seen.height, scores.height);
  const auto columns = Along(image.width, seen.left, seen.width, scores.width);
  std::vector<uint8_t> mask;
  mask.reserve(rows.size() * columns.size());
  for (const Between& y : rows) {
    for (const Between& x : columns) {
      mask.push_back(y.is_seen && x.is_seen ? Likeliest(scores, y, x) : kNoClass);
    }
  }
  return mask;
}

data::Image WithMask(const data::Image& image, const std::vector<uint8_t>& mask) {
  constexpr float kShare = 0.6f;
  constexpr Color kGray = {0.114f, 0.587f, 0.299f};  // ITU-R BT.601
  const int channels = image.extents.channels;
  data::Image copy{{3, image.extents.height, image.extents.width}, {}};
  copy.pixels.reserve(mask.size() * 3);
  for (size_t i = 0; i < mask.size(); ++i) {
    const uint8_t* const pixel = image.pixels.data() + i * channels;
    const auto of = [&](int channel) { return float{1} * pixel[channels == 1 ? 0 : channel]; };
    const bool is_colored = mask[i] != 0 && mask[i] != kNoClass;
    const float gray = kGray[0] * of(0) + kGray[1] * of(1) + kGray[2] * of(2);
    const Color color = ColorOf(mask[i]);
    for (int channel = 0; channel < 3; ++channel) {
      const float value = is_colored ? gray + kShare * (color[channel] - gray) : of(channel);
      copy.pixels.push_back(static_cast<uint8_t>(std::lround(value)));
    }
  }
  return copy;
}

}  // namespace caffe::tools
