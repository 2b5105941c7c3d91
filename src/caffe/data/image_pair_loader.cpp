#include "caffe/data/image_pair_loader.hpp"

#include "caffe/data/readers/image_list_reader.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"

namespace caffe::data {

ImagePairLoader::ImagePairLoader(const DenseImageDataParameter& options)
    : options_(options),
      image_decoder_(options.is_color() ? ColorMode::kColor : ColorMode::kGray),
      label_decoder_(ColorMode::kGray) {
  Require((options.new_height() == 0) == (options.new_width() == 0), "new_height is ",
          options.new_height(), " and new_width ", options.new_width(),
          "; give both, or neither to keep the images as they are");
}

RecordLoader::Sample ImagePairLoader::Load(std::string_view line, uint64_t) {
  const ImagePair pair = ParseImagePair(line);
  file_ = ReadFile(options_.root_folder() + std::string(pair.image));
  ImageView image = image_decoder_.Decode(file_);
  const int height = static_cast<int>(options_.new_height());
  const int width = static_cast<int>(options_.new_width());
  const ImageExtents stored = image.extents;
  if (height > 0 && (height != stored.height || width != stored.width)) {
    resized_ = ResizeImage(image, height, width);
    image = resized_.view();
  }
  ReadLabels(pair.labels, stored);
  if (height > 0) ResizeLabels(stored, height, width);
  return {.image = image,
          .label_image = {{1, image.extents.height, image.extents.width}, nullptr, labels_.data()}};
}

void ImagePairLoader::ReadLabels(std::string_view path, const ImageExtents& image) {
  file_ = ReadFile(options_.root_folder() + std::string(path));
  const ImageView labels = label_decoder_.Decode(file_);
  Require(labels.extents.height == image.height && labels.extents.width == image.width, "'", path,
          "' has ", labels.extents.height, "x", labels.extents.width, " labels, but its image ",
          image.height, "x", image.width, " pixels; there must be one for each pixel");
  const float divisor = options_.label_divide_by_255() ? 255.0f : 1.0f;
  labels_.resize(labels.extents.count());
  for (size_t i = 0; i < labels_.size(); ++i)
    labels_[i] = static_cast<float>(labels.bytes[i]) / divisor;
}

// Each pixel takes the label at its place.
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

}  // namespace caffe::data
