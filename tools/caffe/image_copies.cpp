#include "tools/caffe/image_copies.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"

namespace caffe::tools {
namespace {

// The file name without folder and extension; "film_7" for frame "film.mp4#7".
std::string NameOf(const std::string& image) {
  const std::filesystem::path file = std::filesystem::path(image).filename();
  const std::string extension = file.extension().string();
  std::string name = file.stem().string();
  name += extension.substr(std::min(extension.find('#'), extension.size()));
  std::replace(name.begin(), name.end(), '#', '_');
  return name;
}

}  // namespace

ImageCopies::ImageCopies(std::string folder) : folder_(std::move(folder)) {
  if (!folder_.empty()) MakeFolders(folder_);
}

std::string ImageCopies::Write(const std::string& image, const data::Image& copy) {
  const std::string plain = NameOf(image);
  std::string name = plain;
  while (!names_.insert(name).second) name = StrCat(plain, "_", ++repetitions_[plain]);
  const std::string file = (std::filesystem::path(folder_) / (name + ".png")).string();
  WriteFileAtomically(file, data::EncodeImage(copy, "png"));
  return file;
}

}  // namespace caffe::tools
