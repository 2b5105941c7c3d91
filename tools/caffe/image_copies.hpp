// Copies of images with a net's results drawn into them.
#pragma once

#include <map>
#include <set>
#include <string>

#include "caffe/data/parsers/image_codec.hpp"

namespace caffe::tools {

// Writes PNG files to a folder, named after the images. If images of several folders have the same
// name, later ones get a number: "street", "street_1".
class ImageCopies {
 public:
  ImageCopies() = default;
  // Creates the folder. Throws IoError.
  explicit ImageCopies(std::string folder);

  // True if a folder was given.
  explicit operator bool() const { return !folder_.empty(); }
  // `image` is a path, or "film.mp4#7". Returns the path of the new file. Replaces a file that an
  // earlier call has written; throws InvalidArgument for any other that exists, such as the image
  // itself, IoError if it cannot be written.
  std::string Write(const std::string& image, const data::Image& copy);

 private:
  std::string folder_;
  std::set<std::string> names_;
  std::map<std::string, int> repetitions_;
};

}  // namespace caffe::tools
