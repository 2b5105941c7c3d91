// Files beside images: pictures with what a net has found in them.
#pragma once

#include <map>
#include <set>
#include <string>

#include "caffe/data/parsers/image_codec.hpp"

namespace caffe::tools {

// PNG files in a folder, called as the images they belong to. Of images with one name, which come
// from several folders, the later ones get a number: "street", "street_1".
class ImageCopies {
 public:
  ImageCopies() = default;
  // Makes the folder. Throws IoError.
  explicit ImageCopies(std::string folder);

  // Whether there is a folder.
  explicit operator bool() const { return !folder_.empty(); }
  // `image`: its path, or "film.mp4#7". Returns the path of the new file. Throws IoError.
  std::string Write(const std::string& image, const data::Image& copy);

 private:
  std::string folder_;
  std::set<std::string> names_;
  std::map<std::string, int> repetitions_;
};

}  // namespace caffe::tools
