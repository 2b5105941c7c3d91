// Shared by converters of image lists: turns image files into Datum records, and loops over the
// list.
#pragma once

#include <glog/logging.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/data/readers/record_writer.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::tools {

// Options for converting the images of a list to records.
struct ImageRecordOptions {
  bool gray = false;
  int height = 0, width = 0;     // new size; 0: keep
  int min_dim = 0, max_dim = 0;  // or: shorter side min_dim, longer side at most max_dim
  bool encoded = false;
  std::string encode_type;  // empty: the file's own type
  bool check_size = false;
};

// The extension in lower case, with one name for JPEG: "jpg" for "dir/CAT.JPEG".
inline std::string TypeOf(const std::string& path) {
  std::string type = std::filesystem::path(path).extension().string();
  if (!type.empty()) type.erase(0, 1);
  std::transform(type.begin(), type.end(), type.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return type == "jpeg" ? "jpg" : type;
}

// Checks the options, and sets those that --encode_type implies.
inline ImageRecordOptions Checked(ImageRecordOptions options) {
  Require((options.width > 0) == (options.height > 0), "--resize_width is ", options.width,
          " and --resize_height ", options.height, "; give both or neither");
  Require(options.min_dim >= 0 && options.max_dim >= 0, "--min_dim is ", options.min_dim,
          " and --max_dim ", options.max_dim, "; neither may be negative");
  options.encode_type = TypeOf("image." + options.encode_type);
  if (!options.encode_type.empty() && !options.encoded) {
    LOG(INFO) << "encode_type specified, assuming encoded=true.";
    options.encoded = true;
  }
  return options;
}

inline void SetPlanes(const data::Image& image, Datum* datum) {
  const data::ImageExtents& extents = image.extents;
  std::string* planes = datum->mutable_data();
  planes->resize(image.pixels.size());
  const size_t plane = size_t{1} * extents.height * extents.width;
  for (int channel = 0; channel < extents.channels; ++channel) {
    for (size_t pixel = 0; pixel < plane; ++pixel) {
      (*planes)[channel * plane + pixel] =
          static_cast<char>(image.pixels[pixel * extents.channels + channel]);
    }
  }
}

// The size in which an image is stored.
inline data::ImageExtents StoredExtents(const data::ImageExtents& from,
                                        const ImageRecordOptions& options) {
  if (options.height > 0) return {from.channels, options.height, options.width};
  const int shorter = std::min(from.height, from.width), longer = std::max(from.height, from.width);
  double factor = 1;
  if (options.min_dim > 0) factor = static_cast<double>(options.min_dim) / shorter;
  if (options.max_dim > 0 && (options.min_dim == 0 || factor * longer > options.max_dim)) {
    factor = static_cast<double>(options.max_dim) / longer;
  }
  const auto scaled = [&](int side) {
    return std::max(1, static_cast<int>(std::lround(side * factor)));
  };
  return {from.channels, scaled(from.height), scaled(from.width)};
}

// Throws IoError if the file cannot be read or decoded.
inline Datum MakeDatum(const std::string& path, int label, const ImageRecordOptions& options) {
  const std::string file = ReadFile(path);
  data::Image image = WithContext(path, [&] {
    return data::DecodeImage(file, options.gray ? data::ColorMode::kGray : data::ColorMode::kColor);
  });
  const data::ImageExtents stored = StoredExtents(image.extents, options);
  const bool resizes = !(stored == image.extents);
  if (resizes) image = data::ResizeImage(image.view(), stored.height, stored.width);
  Datum datum;
  datum.set_channels(stored.channels);
  datum.set_height(stored.height);
  datum.set_width(stored.width);
  datum.set_label(label);
  datum.set_encoded(options.encoded);
  const std::string own_type = TypeOf(path);
  const std::string type = options.encode_type.empty() ? own_type : options.encode_type;
  if (!options.encoded) {
    SetPlanes(image, &datum);
  } else if (!resizes && !options.gray && type == own_type) {
    datum.set_data(file);  // unchanged, because re-encoding loses quality
  } else {
    datum.set_data(data::EncodeImage(image, type));
  }
  return datum;
}

// Writes one record per line of a list: record(line, &value) serializes it and returns the image's
// extents. A line whose file cannot be read is skipped with a warning.
template <typename Line, typename Record>
void WriteImageRecords(const std::vector<Line>& lines, const std::string& root,
                       const ImageRecordOptions& options, data::RecordWriter& writer,
                       const Record& record) {
  size_t count = 0;
  data::ImageExtents first;
  std::string value;
  for (size_t index = 0; index < lines.size(); ++index) {
    const Line& line = lines[index];
    data::ImageExtents extents;
    try {
      extents = record(line, &value);
    } catch (const IoError& error) {
      LOG(WARNING) << "Left out " << error.what();
      continue;
    }
    if (count == 0) first = extents;
    Require(!options.check_size || extents == first, root, line.path, ": an image of ", extents,
            ", but the first one has ", first, "; give --resize_height and --resize_width");
    char number[32];
    std::snprintf(number, sizeof number, "%08zu_", index);
    writer.Put(number + line.path, value);
    if (++count % 1000 == 0) LOG(INFO) << "Processed " << count << " files.";
  }
  if (count == 0) {
    throw IoError(StrCat("none of the ", lines.size(), " images of the list can be read; is '",
                         root, "' their folder?"));
  }
  writer.Finish();
  if (count % 1000 != 0) LOG(INFO) << "Processed " << count << " files.";
  if (count < lines.size()) {
    LOG(WARNING) << lines.size() - count << " of " << lines.size() << " images were left out.";
  }
}

}  // namespace caffe::tools
