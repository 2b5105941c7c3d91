#include "caffe/data/transformers/random_part.hpp"

#include <cmath>

#include "caffe/error.hpp"

namespace caffe::data {

void CheckPartRange(const char* message, const PartRange& range) {
  Require(0 < range.min_area && range.min_area <= range.max_area && range.max_area <= 1, message,
          ": min_area is ", range.min_area, " and max_area ", range.max_area,
          "; give 0 < min_area <= max_area <= 1");
  const bool has_ratios = 0 < range.min_ratio && range.min_ratio <= range.max_ratio;
  Require(has_ratios && std::isfinite(range.max_ratio), message, ": min_ratio is ", range.min_ratio,
          " and max_ratio ", range.max_ratio,
          "; give 0 < min_ratio <= max_ratio, of width to height");
}

std::optional<ImagePart> DrawPart(const PartRange& range, int height, int width, Draws& draws) {
  constexpr int kTries = 10;
  const double pixels = static_cast<double>(height) * width;
  const float min_log = std::log(range.min_ratio), max_log = std::log(range.max_ratio);
  for (int i = 0; i < kTries; ++i) {
    const double area = pixels * draws.Uniform(range.min_area, range.max_area);
    const double ratio = std::exp(draws.Uniform(min_log, max_log));
    ImagePart part;
    part.width = static_cast<int>(std::lround(std::sqrt(area * ratio)));
    part.height = static_cast<int>(std::lround(std::sqrt(area / ratio)));
    if (part.width < 1 || part.width > width || part.height < 1 || part.height > height) continue;
    part.top = draws.Below(height - part.height + 1);
    part.left = draws.Below(width - part.width + 1);
    return part;
  }
  return std::nullopt;
}

}  // namespace caffe::data
