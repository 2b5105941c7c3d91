#include "tools/caffe/image_set.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>
#include <sstream>
#include <utility>

#include "caffe/data/readers/image_folder.hpp"
#include "caffe/data/readers/image_list_reader.hpp"
#include "caffe/error.hpp"
#include "caffe/io/text_file.hpp"

namespace caffe::tools {
namespace {

namespace fs = std::filesystem;

ImageSet ReadFolder(const std::string& root) {
  data::ImageFolder folder = data::ListImageFolder(root);
  Require(!folder.classes.empty(), root,
          ": has no folders; give a folder with one folder of images per class, or a list file; of "
          "images with boxes or masks, caffe new makes databases");
  Require(!folder.files.empty(), root, ": its folders hold no files");
  ImageSet set{.root = root,
               .files = std::move(folder.files),
               .names = {},
               .left_out = std::move(folder.left_out)};
  for (std::string& name : folder.classes) {
    const int label = static_cast<int>(set.names.size());
    set.names[label] = std::move(name);
  }
  return set;
}

ImageSet ReadList(const std::string& path, const std::string& root) {
  ImageSet set{.root = root.empty() ? fs::path(path).parent_path().string() : root};
  std::istringstream lines(ReadTextFile(path));
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (line.empty()) continue;
    const data::ImageListEntry entry =
        WithContext(StrCat(path, ":", number), [&] { return data::ParseImageListLine(line); });
    set.files.push_back({std::string(entry.path), entry.label});
    set.names[entry.label] = StrCat(entry.label);
  }
  Require(!set.files.empty(), path, ": the list is empty; write lines 'path label'");
  return set;
}

}  // namespace

ImageSet ReadImageSet(const std::string& path, const std::string& root) {
  if (!fs::is_directory(path)) return ReadList(path, root);
  Require(root.empty(), "--root is '", root, "', but ", path,
          " is not a list file; leave --root out");
  return ReadFolder(path);
}

void Shuffle(uint64_t seed, std::vector<ImageFile>* files) {
  std::shuffle(files->begin(), files->end(), std::mt19937_64(seed));
}

std::vector<ImageFile> TakeShare(double share, uint64_t seed, std::vector<ImageFile>* files) {
  std::map<int, std::vector<size_t>> places;  // indices of the files of each class
  for (size_t i = 0; i < files->size(); ++i) places[(*files)[i].label].push_back(i);
  std::mt19937_64 random(seed);
  std::vector<bool> is_taken(files->size());
  for (auto& [label, of_class] : places) {
    std::shuffle(of_class.begin(), of_class.end(), random);
    const auto count = static_cast<size_t>(std::lround(share * double(of_class.size())));
    for (size_t i = 0; i < std::min(count, of_class.size() - 1); ++i) is_taken[of_class[i]] = true;
  }
  std::vector<ImageFile> taken, kept;
  for (size_t i = 0; i < files->size(); ++i) (is_taken[i] ? taken : kept).push_back((*files)[i]);
  *files = kept;
  return taken;
}

}  // namespace caffe::tools
