// A folder with one folder of images per class, as a database.
#include <glog/logging.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "caffe/core/paths.hpp"
#include "caffe/core/printable.hpp"
#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/data/readers/database.hpp"
#include "caffe/data/readers/image_folder.hpp"
#include "caffe/data/readers/open_once.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"

namespace caffe::data {
namespace {

constexpr size_t kSignatureBytes = 16;  // enough for ImageFormatOf()
constexpr uint64_t kMostImageBytes = uint64_t{1} << 30;

// Why the file is not an image; empty if its first bytes are those of one. Formats that have no
// such bytes are decoded to find out. Throws IoError if the file cannot be read.
std::string WhyNoImage(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) && !IsPlainFile(path)) return "not a regular file";
  std::array<char, kSignatureBytes> signature;
  std::ifstream file(path, std::ios::binary);
  file.read(signature.data(), signature.size());
  const auto count = static_cast<size_t>(file.gcount());
  if (!ImageFormatOf({signature.data(), count}).empty()) return "";
  const std::string bytes = ReadFile(path, kMostImageBytes);
  if (bytes.empty()) return "an empty file";
  try {
    DecodeImage(bytes, ColorMode::kAsStored);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

void WarnOfEmptyClasses(const ImageFolder& folder) {
  std::vector<bool> has_images(folder.classes.size());
  for (const ImageFile& file : folder.files) has_images[static_cast<size_t>(file.label)] = true;
  for (size_t label = 0; label < has_images.size(); ++label) {
    LOG_IF(WARNING, !has_images[label]) << folder.root << ": the class '" << folder.classes[label]
                                        << "' (label " << label << ") has no images";
  }
}

void WarnOfLeftOut(const ImageFolder& folder) {
  if (folder.left_out.empty()) return;
  const LeftOut& first = folder.left_out.front();
  LOG(WARNING) << folder.root << ": " << folder.left_out.size()
               << " files are left out; the first is '" << Printable(first.path)
               << "': " << Printable(first.reason);
}

// Lists the images in the order of their paths, which is the order of keys.
std::unique_ptr<const ImageFolder> List(const std::string& path) {
  if (!IsFolder(path)) {
    throw IoError(path + ": no folder here; give one that has a folder of images for each class");
  }
  ImageFolder folder = ListImageFolder(path);
  if (folder.classes.empty()) {
    throw IoError(path + ": has no folders; give one that has a folder of images for each class");
  }
  std::vector<ImageFile> images;
  for (ImageFile& file : folder.files) {
    std::string reason = WhyNoImage(path + "/" + file.path);
    if (reason.empty()) {
      images.push_back(std::move(file));
    } else {
      folder.left_out.push_back({std::move(file.path), std::move(reason)});
    }
  }
  folder.files = std::move(images);
  WarnOfLeftOut(folder);
  if (folder.files.empty()) throw IoError(path + ": its folders hold no images");
  WarnOfEmptyClasses(folder);
  std::ranges::sort(folder.files, {}, &ImageFile::path);
  return std::make_unique<const ImageFolder>(std::move(folder));
}

// Listing opens each file, so a net, its test net and the workers of a process share a list.
std::shared_ptr<const ImageFolder> ShareList(const std::string& path) {
  static auto* const lists = new OpenOnce<std::unique_ptr<const ImageFolder>>;
  return lists->Get(path, List);
}

// Keys are paths below the root, such as "cat/1.jpg"; values are Datum messages with the label and
// the file's bytes, which are read when a record is asked for.
class FolderReader final : public RecordReader {
 public:
  explicit FolderReader(const std::string& path) : path_(path), folder_(ShareList(path)) {}

  uint64_t count() const override { return folder_->files.size(); }
  bool First(Record* record) override { return Move(0, record); }
  bool Last(Record* record) override { return Move(folder_->files.size() - 1, record); }
  bool Next(Record* record) override { return Move(position_ + 1, record); }
  bool Seek(std::string_view key, Record* record) override {
    const auto file = std::ranges::lower_bound(folder_->files, key, {}, &ImageFile::path);
    return file != folder_->files.end() && file->path == key &&
           Move(static_cast<size_t>(file - folder_->files.begin()), record);
  }
  bool has_index() const override { return true; }
  bool At(uint64_t index, Record* record) override { return Move(index, record); }

 private:
  struct Copy {
    std::string key, value;
  };

  bool Move(size_t position, Record* record) {
    if (position >= folder_->files.size()) return false;
    position_ = position;
    const ImageFile& file = folder_->files[position];
    Datum datum;
    datum.set_label(file.label);
    datum.set_encoded(true);
    datum.set_data(ReadFile(path_ + "/" + file.path, kMostImageBytes));
    const auto copy = std::make_shared<const Copy>(file.path, datum.SerializeAsString());
    *record = {copy->key, copy->value, copy};
    return true;
  }

  const std::string path_;
  const std::shared_ptr<const ImageFolder> folder_;
  size_t position_ = 0;
};

const DatabaseRegistrar folder_registrar(
    "FOLDER",
    {.backend = DataParameter::FOLDER,
     .marker = nullptr,
     .open = [](const std::string& path) -> std::unique_ptr<RecordReader> {
       return std::make_unique<FolderReader>(path);
     },
     .create = [](const std::string& path) -> std::unique_ptr<RecordWriter> {
       throw Unsupported(path +
                         ": a folder of images is read as a database, but not written as one; "
                         "make an LMDB, of which caffe data export makes a folder");
     }});

}  // namespace
}  // namespace caffe::data
