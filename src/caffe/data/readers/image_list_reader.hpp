// Text files that list images and their labels, as databases.
#pragma once

#include <memory>
#include <string>

#include "caffe/data/readers/record_reader.hpp"
#include "caffe/export.hpp"

namespace caffe::data {

// Each line "path label" is a record: its key is "LINE: path", its value the line. The label
// follows the last space, so that paths may contain spaces. Throws IoError for a missing file,
// InvalidArgument naming a line without a label.
std::unique_ptr<RecordReader> OpenImageList(const std::string& path);

// The parts of a line.
struct ImageListEntry {
  std::string_view path;
  int label = 0;
};
CAFFE_EXPORT ImageListEntry ParseImageListLine(std::string_view line);

// The same for lines "path path": an image and the image of its labels. The second path follows the
// last space.
std::unique_ptr<RecordReader> OpenImagePairs(const std::string& path);

// The same for lines "path ..."; only the first word is used.
std::unique_ptr<RecordReader> OpenImageNames(const std::string& path);
std::string_view FirstWord(std::string_view line);

struct ImagePair {
  std::string_view image, labels;
};
ImagePair ParseImagePair(std::string_view line);

}  // namespace caffe::data
