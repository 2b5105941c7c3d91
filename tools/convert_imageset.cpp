// Converts a list of image files and labels to a database of Datum records.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>

#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/data/readers/record_reader.hpp"
#include "caffe/data/readers/record_writer.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/proto/caffe.pb.h"
#include "tools/tool_main.hpp"

DEFINE_bool(gray, false, "Treat the images as grey ones");
DEFINE_bool(shuffle, false, "Shuffle the images and their labels");
DEFINE_uint64(shuffle_seed, 1, "Seed of the shuffling");
DEFINE_string(backend, "lmdb", "Database to write: lmdb or leveldb");
DEFINE_int32(resize_width, 0, "Width to resize the images to; 0: keep");
DEFINE_int32(resize_height, 0, "Height to resize the images to; 0: keep");
DEFINE_bool(check_size, false, "Check that all images have the same size");
DEFINE_bool(encoded, false, "Store compressed images instead of pixels");
DEFINE_string(encode_type, "",
              "Type of the compressed images (png, jpg, ...); empty: each file's own");

namespace caffe::tools {
namespace {

struct Line {
  std::string path;
  int label = 0;
};

// Lines "path label"; a path may hold spaces, so that the last one separates.
std::vector<Line> ReadList(const std::string& list_path) {
  std::ifstream file(list_path);
  if (!file) throw IoError(list_path + ": cannot open; does the file exist?");
  std::vector<Line> lines;
  int number = 0;
  for (std::string text; std::getline(file, text);) {
    ++number;
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
    if (text.empty()) continue;
    const size_t space = text.find_last_of(" \t");
    Line line;
    const char* end = text.data() + text.size();
    const bool is_good = space != std::string::npos && space > 0 &&
                         std::from_chars(text.data() + space + 1, end, line.label).ptr == end;
    Require(is_good, list_path, ":", number, ": expected 'path label', got '", text, "'");
    line.path = text.substr(0, text.find_last_not_of(" \t", space) + 1);
    lines.push_back(std::move(line));
  }
  Require(!lines.empty(), list_path, ": the list is empty; write lines 'path label'");
  return lines;
}

// "jpg" for "dir/CAT.JPEG": lower case, and one name for JPEG's two.
std::string TypeOf(const std::string& path) {
  std::string type = std::filesystem::path(path).extension().string();
  if (!type.empty()) type.erase(0, 1);
  std::transform(type.begin(), type.end(), type.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return type == "jpeg" ? "jpg" : type;
}

void SetPlanes(const data::Image& image, Datum* datum) {
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

Datum MakeDatum(const std::string& path, int label, bool encoded, const std::string& encode_type) {
  const std::string file = ReadFile(path);
  data::Image image = WithContext(path, [&] {
    return data::DecodeImage(file, FLAGS_gray ? data::ColorMode::kGray : data::ColorMode::kColor);
  });
  const bool resizes = FLAGS_resize_height > 0 && FLAGS_resize_width > 0;
  if (resizes) image = data::ResizeImage(image.view(), FLAGS_resize_height, FLAGS_resize_width);
  Datum datum;
  datum.set_channels(image.extents.channels);
  datum.set_height(image.extents.height);
  datum.set_width(image.extents.width);
  datum.set_label(label);
  datum.set_encoded(encoded);
  const std::string own_type = TypeOf(path);
  const std::string type = encode_type.empty() ? own_type : encode_type;
  if (!encoded) {
    SetPlanes(image, &datum);
  } else if (!resizes && !FLAGS_gray && type == own_type) {
    datum.set_data(file);  // as it is: encoding again would lose quality
  } else {
    datum.set_data(data::EncodeImage(image, type));
  }
  return datum;
}

void Convert(const std::string& root, const std::string& list_path, const std::string& database) {
  Require((FLAGS_resize_width > 0) == (FLAGS_resize_height > 0), "--resize_width is ",
          FLAGS_resize_width, " and --resize_height ", FLAGS_resize_height,
          "; give both or neither");
  std::vector<Line> lines = ReadList(list_path);
  if (FLAGS_shuffle) {
    LOG(INFO) << "Shuffling data";
    std::shuffle(lines.begin(), lines.end(), std::mt19937_64(FLAGS_shuffle_seed));
  }
  LOG(INFO) << "A total of " << lines.size() << " images.";
  const std::string encode_type = TypeOf("image." + FLAGS_encode_type);
  if (!encode_type.empty() && !FLAGS_encoded) {
    LOG(INFO) << "encode_type specified, assuming encoded=true.";
  }
  const bool encoded = FLAGS_encoded || !encode_type.empty();

  const auto writer = data::CreateRecordWriter(data::ParseBackend(FLAGS_backend), database);
  size_t count = 0;
  data::ImageExtents first;
  std::string value;
  for (size_t index = 0; index < lines.size(); ++index) {
    const Line& line = lines[index];
    Datum datum;
    try {
      datum = MakeDatum(root + line.path, line.label, encoded, encode_type);
    } catch (const IoError& error) {
      LOG(WARNING) << "Left out " << error.what();
      continue;
    }
    const data::ImageExtents extents{datum.channels(), datum.height(), datum.width()};
    if (count == 0) first = extents;
    Require(!FLAGS_check_size || extents == first, root, line.path, ": an image of ", extents,
            ", but the first one has ", first, "; give --resize_height and --resize_width");
    char number[32];
    std::snprintf(number, sizeof number, "%08zu_", index);
    datum.SerializeToString(&value);
    writer->Put(number + line.path, value);
    if (++count % 1000 == 0) LOG(INFO) << "Processed " << count << " files.";
  }
  if (count == 0) {
    throw IoError(StrCat("none of the ", lines.size(), " images in ", list_path,
                         " can be read; is '", root, "' their folder?"));
  }
  writer->Finish();
  if (count % 1000 != 0) LOG(INFO) << "Processed " << count << " files.";
  if (count < lines.size()) {
    LOG(WARNING) << lines.size() - count << " of " << lines.size() << " images were left out.";
  }
}

}  // namespace
}  // namespace caffe::tools

int main(int argc, char** argv) {
  return caffe::tools::RunTool(
      argc, argv,
      "Converts a set of images to a database of Datum records.\n"
      "Usage: convert_imageset [FLAGS] ROOT_FOLDER/ LIST_FILE DB_NAME\n"
      "LIST_FILE has lines 'path label'; ROOT_FOLDER/ is put before each path.",
      3, 3, [](const std::vector<std::string>& arguments) {
        caffe::tools::Convert(arguments[0], arguments[1], arguments[2]);
      });
}
