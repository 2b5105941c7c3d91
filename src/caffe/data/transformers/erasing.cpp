#include "caffe/data/transformers/erasing.hpp"

#include "caffe/data/transformers/mean_image.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

// Follows all numbers that choose the rectangle.
constexpr uint64_t kFirstNoiseBlock = 1024;

}  // namespace

Erasing::Erasing(const TransformationParameter& param, RandomStream random)
    : param_(param.erasing()), scale_(param.scale()), means_(ChannelMeans(param)), random_(random) {
  Require(0 <= param_.prob() && param_.prob() <= 1, "erasing: prob is ", param_.prob(),
          "; give 0 to 1");
  CheckPartRange("erasing", {param_.min_area(), param_.max_area(), 1, 1});
  Require(0 < param_.min_ratio() && param_.min_ratio() <= 1, "erasing: min_ratio is ",
          param_.min_ratio(), "; give more than 0 and at most 1, the largest ratio is its inverse");
}

std::optional<ImagePart> Erasing::Choose(int height, int width, uint64_t record) const {
  Draws draws(random_, record);
  if (!draws.Chance(param_.prob())) return std::nullopt;
  return DrawPart(
      {param_.min_area(), param_.max_area(), param_.min_ratio(), 1 / param_.min_ratio()}, height,
      width, draws);
}

float Erasing::MeanOf(int channel) const {
  if (means_.empty()) return 0;
  return means_.size() == 1 ? means_[0] : means_.at(static_cast<size_t>(channel));
}

void Erasing::Apply(const ImageExtents& extents, Layout layout, uint64_t record,
                    float* image) const {
  const auto [channels, height, width] = extents;
  const std::optional<ImagePart> part = Choose(height, width, record);
  if (!part) return;
  const bool is_plain = layout == Layout::kPlain;
  const int64_t next_pixel = is_plain ? 1 : channels;
  const int64_t next_channel = is_plain ? int64_t{height} * width : 1;
  const bool is_noise = param_.fill() == ErasingParameter::NOISE;
  for (int channel = 0; channel < channels; ++channel) {
    const float mean = MeanOf(channel);
    for (int row = part->top; row < part->top + part->height; ++row) {
      float* const y =
          image + channel * next_channel + (int64_t{row} * width + part->left) * next_pixel;
      const uint64_t first =
          kFirstNoiseBlock + (static_cast<uint64_t>(channel) * height + row) * width;
      std::array<uint32_t, 4> bits{};
      for (int i = 0; i < part->width; ++i) {
        // A block has 16 bytes; each row begins with a new block.
        if (is_noise && i % 16 == 0) bits = random_.Block(first + i / 16, record);
        const uint32_t byte = bits[i / 4 % 4] >> (8 * (i % 4)) & 255;
        y[i * next_pixel] = is_noise ? (static_cast<float>(byte) - mean) * scale_ : 0;
      }
    }
  }
}

}  // namespace caffe::data
