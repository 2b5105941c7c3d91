#include "caffe/data/image_file_loader.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "caffe/core/activity.hpp"
#include "caffe/core/paths.hpp"
#include "caffe/core/printable.hpp"
#include "caffe/data/readers/image_list_reader.hpp"
#include "caffe/error.hpp"

namespace caffe::data {

ImageFileLoader::ImageFileLoader(const ImageDataParameter& options)
    : options_(options), decoder_(options.is_color() ? ColorMode::kColor : ColorMode::kGray) {
  Require((options.new_height() == 0) == (options.new_width() == 0), "new_height is ",
          options.new_height(), " and new_width ", options.new_width(),
          "; give both, or neither to keep the images as they are");
}

void ImageFileLoader::ReadFile(std::string_view path) {
  const std::string name = options_.root_folder() + std::string(path);
  const Activity reading("parser", "reads", name);
  std::ifstream file(name, std::ios::binary | std::ios::ate);
  if (!file) {
    throw IoError(StrCat("cannot open '", PrintableLines(name),
                         "'; image_data_param { root_folder: '", options_.root_folder(),
                         "' } comes before the paths of the list"));
  }
  if (IsFolder(name)) throw IoError(StrCat("'", PrintableLines(name), "' is a directory"));
  file_.resize(static_cast<size_t>(file.tellg()));
  file.seekg(0);
  file.read(file_.data(), static_cast<std::streamsize>(file_.size()));
  if (!file) throw IoError(StrCat("cannot read '", PrintableLines(name), "'"));
}

RecordLoader::Sample ImageFileLoader::Load(std::string_view line, uint64_t) {
  const ImageListEntry entry = ParseImageListLine(line);
  ReadFile(entry.path);
  const ImageView image = decoder_.Decode(file_);
  const float label = static_cast<float>(entry.label);
  const ImageExtents& from = image.extents;
  int height = static_cast<int>(options_.new_height()),
      width = static_cast<int>(options_.new_width());
  if (height == 0 && options_.short_side() > 0) {
    const double factor =
        static_cast<double>(options_.short_side()) / std::min(from.height, from.width);
    height = static_cast<int>(std::lround(from.height * factor));
    width = static_cast<int>(std::lround(from.width * factor));
  }
  if (height == 0 || (height == from.height && width == from.width))
    return {.image = image, .label = label};
  resized_ = ResizeImage(image, height, width);
  return {.image = resized_.view(), .label = label};
}

}  // namespace caffe::data
