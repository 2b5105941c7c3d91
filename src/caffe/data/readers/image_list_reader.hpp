// A text file that names images and their labels, as a database.
#pragma once

#include <memory>
#include <string>

#include "caffe/data/readers/record_reader.hpp"
#include "caffe/export.hpp"

namespace caffe::data {

// Each line "path label" is a record: its key is "LINE: path", its value the line. The label is
// what follows the last space, so that paths may contain spaces. Throws IoError for a missing
// file, InvalidArgument naming the line that has no label.
std::unique_ptr<RecordReader> OpenImageList(const std::string& path);

// The parts of a line.
struct ImageListEntry {
  std::string_view path;
  int label = 0;
};
CAFFE_EXPORT ImageListEntry ParseImageListLine(std::string_view line);

}  // namespace caffe::data
