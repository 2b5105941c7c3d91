// Labelled images on disk: a folder with one folder per class, or a list file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "caffe/data/readers/image_folder.hpp"

namespace caffe::tools {

using data::ImageFile;
using data::LeftOut;

struct ImageSet {
  std::string root;
  std::vector<ImageFile> files;
  std::map<int, std::string> names;  // by label
  std::vector<LeftOut> left_out;
};

// A folder's subfolders are its classes, in the order of their names; images may lie deeper, and
// hidden files are ignored. In a list with lines "path label", paths are relative to `root`, or to
// the list's folder if `root` is empty. Throws InvalidArgument if the path is neither, and for a
// malformed line.
ImageSet ReadImageSet(const std::string& path, const std::string& root);

// The order depends on the seed only.
void Shuffle(uint64_t seed, std::vector<ImageFile>* files);

// Moves a share of each class's images out of `files`, rounded to the nearest whole number. The
// choice is random but depends on the seed only; both lists keep their order. At least one image
// of each class stays.
std::vector<ImageFile> TakeShare(double share, uint64_t seed, std::vector<ImageFile>* files);

}  // namespace caffe::tools
