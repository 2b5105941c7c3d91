// Converts a list of image files and labels to a database of Datum records.
#include <random>
#include <sstream>

#include "caffe/data/readers/image_list_reader.hpp"
#include "caffe/data/readers/record_reader.hpp"
#include "caffe/io/text_file.hpp"
#include "tools/image_records.hpp"
#include "tools/interruption.hpp"
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

// Reads lines "path label". Paths may contain spaces, so the last space separates.
std::vector<Line> ReadList(const std::string& list_path) {
  std::istringstream file(ReadTextFile(list_path));
  std::vector<Line> lines;
  int number = 0;
  for (std::string text; std::getline(file, text);) {
    ++number;
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
    if (text.empty()) continue;
    const data::ImageListEntry entry =
        WithContext(StrCat(list_path, ":", number), [&] { return data::ParseImageListLine(text); });
    lines.push_back({std::string(entry.path), entry.label});
  }
  Require(!lines.empty(), list_path, ": the list is empty; write lines 'path label'");
  return lines;
}

void Convert(const std::string& root, const std::string& list_path, const std::string& database) {
  const ImageRecordOptions options = Checked({.gray = FLAGS_gray,
                                              .height = FLAGS_resize_height,
                                              .width = FLAGS_resize_width,
                                              .encoded = FLAGS_encoded,
                                              .encode_type = FLAGS_encode_type,
                                              .check_size = FLAGS_check_size});
  std::vector<Line> lines = ReadList(list_path);
  if (FLAGS_shuffle) {
    LOG(INFO) << "Shuffling data";
    std::shuffle(lines.begin(), lines.end(), std::mt19937_64(FLAGS_shuffle_seed));
  }
  LOG(INFO) << "A total of " << lines.size() << " images.";
  InterruptibleWriter writer(data::ParseBackend(FLAGS_backend), database);
  WriteImageRecords(lines, root, options, writer, [&](const Line& line, std::string* value) {
    const Datum datum = MakeDatum(root + line.path, line.label, options);
    datum.SerializeToString(value);
    return data::ImageExtents{datum.channels(), datum.height(), datum.width()};
  });
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
        caffe::tools::RunInterruptible(
            [&] { caffe::tools::Convert(arguments[0], arguments[1], arguments[2]); });
      });
}
