// convert_imageset ROOT/ LISTFILE DB: image files to a database.
#include <gflags/gflags.h>
#include <glog/logging.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <random>

#include "caffe/dataset.hpp"
#include "caffe/error.hpp"

DEFINE_bool(gray, false, "Treat images as grayscale ones.");
DEFINE_bool(shuffle, false, "Randomly shuffle the order of images and their labels.");
DEFINE_string(backend, "lmdb", "The backend for storing the result.");
DEFINE_int32(resize_width, 0, "Width that images are resized to.");
DEFINE_int32(resize_height, 0, "Height that images are resized to.");
DEFINE_bool(check_size, false, "Stop when images differ in size.");
DEFINE_bool(encoded, false, "Store compressed images.");
DEFINE_string(encode_type, "", "What to compress images to ('png', 'jpg', ...); implies -encoded.");
DEFINE_uint64(shuffle_seed, 1701, "Seed of -shuffle.");

namespace {

struct Line {
  std::string path;
  int label = 0;
};

// Lines "path label"; the path may hold blanks.
std::vector<Line> ReadList(const std::string& file) {
  std::ifstream list(file);
  if (!list) throw caffe::IoError(file + ": cannot open");
  std::vector<Line> lines;
  int number = 0;
  for (std::string text; std::getline(list, text);) {
    ++number;
    if (!text.empty() && text.back() == '\r') text.pop_back();
    if (text.empty()) continue;
    const size_t blank = text.find_last_of(" \t");
    char* end = nullptr;
    const long label = blank == std::string::npos ? 0 : std::strtol(text.c_str() + blank + 1, &end, 10);
    if (blank == std::string::npos || end == text.c_str() + blank + 1 || *end != '\0') {
      throw caffe::IoError(caffe::StrCat(file, ":", number, ": '", text, "' is not \"path label\""));
    }
    lines.push_back({text.substr(0, blank), static_cast<int>(label)});
  }
  if (lines.empty()) throw caffe::IoError(file + ": lists no images");
  return lines;
}

std::string ExtensionOf(const std::string& path) {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(dot + 1);
}

void Convert(const std::string& root, const std::string& list, const std::string& db) {
  std::vector<Line> lines = ReadList(list);
  if (FLAGS_shuffle) {
    LOG(INFO) << "Shuffling data";
    std::shuffle(lines.begin(), lines.end(), std::mt19937_64(FLAGS_shuffle_seed));
  }
  LOG(INFO) << "A total of " << lines.size() << " images.";
  if (!FLAGS_encode_type.empty() && !FLAGS_encoded) LOG(INFO) << "encode_type specified, assuming encoded=true.";
  const bool is_encoded = FLAGS_encoded || !FLAGS_encode_type.empty();
  caffe::DatasetWriter writer(db, FLAGS_backend);
  size_t written = 0, unreadable = 0, expected_size = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    caffe::ImageOptions options{FLAGS_resize_height, FLAGS_resize_width, !FLAGS_gray};
    if (is_encoded) {
      options.encode_type = FLAGS_encode_type.empty() ? ExtensionOf(lines[i].path) : FLAGS_encode_type;
    }
    caffe::Datum datum;
    try {
      caffe::ReadImageToDatum(root + lines[i].path, lines[i].label, options, &datum);
    } catch (const caffe::IoError& error) {
      LOG(WARNING) << "Skipping " << error.what();
      ++unreadable;
      continue;
    }
    if (FLAGS_check_size && !is_encoded) {
      if (expected_size == 0) expected_size = datum.data().size();
      caffe::Require(datum.data().size() == expected_size, lines[i].path, ": has ", datum.data().size(),
                     " values, the images before ", expected_size, "; use -resize_width and -resize_height");
    }
    char index[24];
    std::snprintf(index, sizeof(index), "%08zu", i);
    writer.Put(std::string(index) + "_" + lines[i].path, datum);
    if (++written % 1000 == 0) LOG(INFO) << "Processed " << written << " files.";
  }
  writer.Close();
  LOG(INFO) << "Processed " << written << " files.";
  if (unreadable > 0) LOG(WARNING) << unreadable << " files could not be read and were left out.";
  if (written == 0) throw caffe::IoError(root + ": not one listed image could be read; is the first argument right?");
}

}  // namespace

int main(int argc, char** argv) {
  FLAGS_logtostderr = true;
  gflags::SetUsageMessage(
      "Converts images to a database for the Data layer.\n"
      "usage: convert_imageset [flags] ROOT_FOLDER/ LIST_FILE DB_NAME");
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  google::InitGoogleLogging(argv[0]);
  if (argc != 4) {
    gflags::ShowUsageWithFlagsRestrict(argv[0], "convert_imageset");
    return 1;
  }
  try {
    Convert(argv[1], argv[2], argv[3]);
  } catch (const std::exception& error) {
    LOG(ERROR) << "convert_imageset: " << error.what();
    return 1;
  }
  return 0;
}
