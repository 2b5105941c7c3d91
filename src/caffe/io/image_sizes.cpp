#include "caffe/io/image_sizes.hpp"

#include <algorithm>
#include <sstream>

#include "caffe/error.hpp"
#include "caffe/io/text_file.hpp"

namespace caffe {

std::vector<NamedImageSize> ReadImageSizes(const std::string& path) {
  std::istringstream file(ReadTextFile(path));
  std::vector<NamedImageSize> sizes;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    std::istringstream words(line);
    NamedImageSize size;
    words >> size.name >> size.height >> size.width;
    Require(words && size.height > 0 && size.width > 0, path, ":", number, ": '", line,
            "' is not an image's name, height and width");
    sizes.push_back(std::move(size));
  }
  Require(!sizes.empty(), path, " names no image; write it with get_image_size");
  return sizes;
}

ImageBox InPixels(const ImageBox& parts, const NamedImageSize& size,
                  const ResizeParameter& resize) {
  ImageBox box = parts;
  double scale_x = size.width, scale_y = size.height;
  if (resize.resize_mode() == ResizeParameter::FIT_LARGE_SIZE_AND_PAD) {
    const double height = resize.height(), width = resize.width();
    const double factor = std::min(height / size.height, width / size.width);
    const double part_x = factor * size.width / width, part_y = factor * size.height / height;
    const auto unpad = [](double at, double part) { return (at - (1 - part) / 2) / part; };
    box.xmin = unpad(box.xmin, part_x), box.xmax = unpad(box.xmax, part_x);
    box.ymin = unpad(box.ymin, part_y), box.ymax = unpad(box.ymax, part_y);
  } else if (resize.resize_mode() == ResizeParameter::FIT_SMALL_SIZE && resize.height_scale() > 0 &&
             resize.width_scale() > 0) {
    scale_x = resize.width_scale(), scale_y = resize.height_scale();
  }
  const auto pixel = [](double at, double scale, int side) {
    return std::clamp(at * scale, 0.0, static_cast<double>(side));
  };
  return {pixel(box.xmin, scale_x, size.width), pixel(box.ymin, scale_y, size.height),
          pixel(box.xmax, scale_x, size.width), pixel(box.ymax, scale_y, size.height)};
}

}  // namespace caffe
