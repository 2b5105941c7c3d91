#include "caffe/data/image_pair_loader.hpp"

#include <algorithm>

#include "caffe/data/readers/image_list_reader.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"

namespace caffe::data {

ImagePairLoader::ImagePairLoader(const DenseImageDataParameter& options,
                                 const ImagePairRules& rules, const ImagePadding& padding)
    : options_(options),
      rules_(rules),
      padding_(padding),
      image_decoder_(options.is_color() ? ColorMode::kColor : ColorMode::kGray),
      label_decoder_(ColorMode::kGray) {
  Require((options.new_height() == 0) == (options.new_width() == 0), "new_height is ",
          options.new_height(), " and new_width ", options.new_width(),
          "; give both, or neither to keep the images as they are");
}

RecordLoader::Sample ImagePairLoader::Load(std::string_view line, uint64_t) {
  file_ = ReadFile(options_.root_folder() + std::string(PathIn(line)));
  ImageView image = image_decoder_.Decode(file_);
  const int height = static_cast<int>(options_.new_height());
  const int width = static_cast<int>(options_.new_width());
  const ImageExtents stored = image.extents;
  if (height > 0 && (height != stored.height || width != stored.width)) {
    resized_ = ResizeImage(image, height, width);
    image = resized_.view();
  }
  LabelPixels(line, stored);
  if (height > 0) ResizeLabels(stored, height, width);
  const ImageExtents shown = image.extents;
  if (shown.height < padding_.height || shown.width < padding_.width) image = Padded(image);
  return {.image = image,
          .label_image = {{1, image.extents.height, image.extents.width}, nullptr, labels_.data()},
          .shown_height = shown.height,
          .shown_width = shown.width};
}

std::string_view ImagePairLoader::PathIn(std::string_view line) const {
  switch (rules_.labels) {
    case ImagePairRules::Labels::kNumber:
      return ParseImageListLine(line).path;
    case ImagePairRules::Labels::kNone:
      return FirstWord(line);
    default:
      return ParseImagePair(line).image;
  }
}

void ImagePairLoader::LabelPixels(std::string_view line, const ImageExtents& image) {
  if (rules_.labels == ImagePairRules::Labels::kImage) {
    return ReadLabels(ParseImagePair(line).labels, image);
  }
  const int label = rules_.labels == ImagePairRules::Labels::kNumber
                        ? ParseImageListLine(line).label
                        : rules_.ignore_label;
  labels_.assign(static_cast<size_t>(image.height) * image.width, static_cast<float>(label));
}

void ImagePairLoader::ReadLabels(std::string_view path, const ImageExtents& image) {
  file_ = ReadFile(options_.root_folder() + std::string(path));
  const ImageView labels = label_decoder_.Decode(file_);
  Require(labels.extents.height == image.height && labels.extents.width == image.width, "'", path,
          "' has ", labels.extents.height, "x", labels.extents.width, " labels, but its image ",
          image.height, "x", image.width, " pixels; there must be one for each pixel");
  const float divisor = options_.label_divide_by_255() ? 255.0f : 1.0f;
  labels_.resize(labels.extents.count());
  for (size_t i = 0; i < labels_.size(); ++i) {
    const uint8_t label = labels.bytes[i];
    labels_[i] = rules_.is_binary ? float(label >= 128) : static_cast<float>(label) / divisor;
  }
}

// Resizes by nearest neighbour, so that labels are not mixed.
void ImagePairLoader::ResizeLabels(const ImageExtents& from, int height, int width) {
  std::vector<float> resized(static_cast<size_t>(height) * width);
  for (int row = 0; row < height; ++row) {
    const int64_t source = int64_t{row} * from.height / height * from.width;
    for (int column = 0; column < width; ++column) {
      resized[static_cast<size_t>(row) * width + column] =
          labels_[source + int64_t{column} * from.width / width];
    }
  }
  labels_ = std::move(resized);
}

// Uses floats, because a mean may have fractions: padding with mean_value becomes exactly 0.
ImageView ImagePairLoader::Padded(const ImageView& image) {
  const auto [channels, height, width] = image.extents;
  const size_t colors = padding_.color.size();
  Require(colors <= 1 || colors == static_cast<size_t>(channels), "transform_param has means for ",
          colors, " channels, but the image to be padded has ", channels,
          " channels; give one mean_value, or one per channel");
  const ImageExtents outer{channels, std::max(height, padding_.height),
                           std::max(width, padding_.width)};
  const int64_t plane = int64_t{outer.height} * outer.width;
  std::vector<float> labels(plane, static_cast<float>(rules_.ignore_label));
  padded_.resize(outer.count());
  for (int channel = 0; channel < channels; ++channel) {
    const float color = colors == 0 ? 0 : padding_.color[colors == 1 ? 0 : channel];
    std::fill_n(padded_.begin() + channel * plane, plane, color);
  }
  for (int row = 0; row < height; ++row) {
    for (int column = 0; column < width; ++column) {
      const int64_t from = int64_t{row} * width + column;
      const int64_t to = int64_t{row} * outer.width + column;
      labels[to] = labels_[from];
      for (int channel = 0; channel < channels; ++channel)
        padded_[channel * plane + to] = image.bytes[from * channels + channel];
    }
  }
  labels_ = std::move(labels);
  return {.extents = outer, .floats = padded_.data()};
}

}  // namespace caffe::data
