#include "tools/caffe/image_copies.hpp"

#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "tools/caffe/own_files.hpp"

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

std::string BigEndian(uint32_t number) {
  return {static_cast<char>(number >> 24), static_cast<char>(number >> 16),
          static_cast<char>(number >> 8), static_cast<char>(number)};
}

// The chunk of a PNG file that tells which program wrote it.
std::string SoftwareChunk() {
  using namespace std::string_literals;
  const std::string typed = "tEXtSoftware\0Cortado"s;
  const uLong check =
      crc32(0, reinterpret_cast<const Bytef*>(typed.data()), static_cast<uInt>(typed.size()));
  return BigEndian(static_cast<uint32_t>(typed.size() - 4)) + typed +
         BigEndian(static_cast<uint32_t>(check));
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
  constexpr size_t kEndChunk = 12;  // bytes of the last chunk, which holds nothing
  const std::string mark = SoftwareChunk();
  std::string png = data::EncodeImage(copy, "png");
  png.insert(png.size() - kEndChunk, mark);
  RequireOwnFile(file, [&](const std::string& content) {
    return content.size() >= mark.size() + kEndChunk &&
           content.compare(content.size() - kEndChunk - mark.size(), mark.size(), mark) == 0;
  });
  WriteFileAtomically(file, png);
  return file;
}

}  // namespace caffe::tools
