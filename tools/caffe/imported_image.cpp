#include "tools/caffe/imported_image.hpp"

#include <exception>
#include <filesystem>
#include <new>
#include <string_view>
#include <system_error>

#include "caffe/data/parsers/exif.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::tools {
namespace {

data::Image Decode(std::string_view file) {
  if (file.empty()) throw IoError("an empty file");
  return data::DecodeImage(file, data::ColorMode::kAsStored);
}

// True if the Data layer of every Caffe reads this format: none decodes GIF, and BVLC's reads PNG
// with 8 bits only.
bool IsFitToStore(const std::string& format, std::string_view file) {
  constexpr size_t kBitDepth = 24;  // of a PNG file's header
  return format == "png" ? file[kBitDepth] <= 8
                         : format == "jpg" || format == "bmp" || format == "webp";
}

// Applies the options. Returns true if the pixels now differ from the file's.
bool Change(std::string_view file, const ImportOptions& options, data::Image* image) {
  // Data layers ignore Exif, so its orientation is applied here.
  const bool decodes_again =
      image->extents.channels != (options.gray ? 1 : 3) || data::ExifOrientation(file) != 1;
  if (decodes_again) {
    *image =
        data::DecodeImage(file, options.gray ? data::ColorMode::kGray : data::ColorMode::kColor);
  }
  const data::ImageExtents& extents = image->extents;
  const bool resizes =
      options.height > 0 && (extents.height != options.height || extents.width != options.width);
  if (resizes) *image = data::ResizeImage(image->view(), options.height, options.width);
  return decodes_again || resizes;
}

void Import(const std::string& path, int label, const ImportOptions& options,
            ImportedImage* imported) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored)) {
    throw IoError("not a regular file");  // a pipe might never end
  }
  std::string file = ReadFile(path);
  imported->format = data::ImageFormatOf(file);
  data::Image& image = imported->pixels;
  image = Decode(file);
  imported->original = image.extents;
  if (Change(file, options, &image) || !IsFitToStore(imported->format, file)) {
    file = data::EncodeImage(image, imported->format == "jpg" ? "jpg" : "png");
  }
  Datum datum;
  datum.set_channels(image.extents.channels);
  datum.set_height(image.extents.height);
  datum.set_width(image.extents.width);
  datum.set_label(label);
  datum.set_encoded(true);
  datum.set_data(std::move(file));
  datum.SerializeToString(&imported->record);
}

}  // namespace

ImportedImage ImportImage(const std::string& path, int label, const ImportOptions& options) {
  ImportedImage imported;
  try {
    Import(path, label, options, &imported);
  } catch (const std::bad_alloc&) {
    throw;  // not the image's fault
  } catch (const std::exception& error) {
    imported.error = error.what();
    if (imported.error.starts_with(path + ": ")) imported.error.erase(0, path.size() + 2);
  }
  return imported;
}

}  // namespace caffe::tools
