// Images with labels, as they lie on disk: a folder with one folder per class, or a list file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace caffe::tools {

struct ImageFile {
  std::string path;  // within the set's root
  int label = 0;
};

// A file that is not part of the database.
struct LeftOut {
  std::string path;
  std::string reason;
};

struct ImageSet {
  std::string root;
  std::vector<ImageFile> files;
  std::map<int, std::string> names;  // of the labels
  std::vector<LeftOut> left_out;
};

// Of a folder, the classes are its folders in the order of their names, and images may lie deeper;
// hidden files are passed over. Of a list of lines "path label", paths are within `root`, or where
// that is empty within the list's folder. Throws InvalidArgument for neither, and for a list with a
// malformed line.
ImageSet ReadImageSet(const std::string& path, const std::string& root);

// Always the same order for a seed.
void Shuffle(uint64_t seed, std::vector<ImageFile>* files);

// Takes the nearest whole number to `share` of each class's images out of `files`, at random but
// always the same ones for a seed; both keep their order. A class keeps at least one image.
std::vector<ImageFile> TakeShare(double share, uint64_t seed, std::vector<ImageFile>* files);

}  // namespace caffe::tools
