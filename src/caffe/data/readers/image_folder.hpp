// Lists a folder that has one folder of images per class.
#pragma once

#include <string>
#include <vector>

#include "caffe/export.hpp"

namespace caffe::data {

struct ImageFile {
  std::string path;  // relative to the root of its set
  int label = 0;
};

// A file that is not part of the set.
struct LeftOut {
  std::string path;
  std::string reason;
};

struct ImageFolder {
  std::string root;
  std::vector<std::string> classes;  // names, by label; a class may be empty
  std::vector<ImageFile> files;
  std::vector<LeftOut> left_out;
};

// The folders in `root` are the classes, in the order of their names; images may lie deeper. Hidden
// files are ignored, links to folders are left out. Files are listed class by class in the order of
// their names, and are not opened. Throws InvalidArgument if a class's name has control characters,
// or if the folders are parts of a set ("train", "val").
CAFFE_EXPORT ImageFolder ListImageFolder(const std::string& root);

}  // namespace caffe::data
