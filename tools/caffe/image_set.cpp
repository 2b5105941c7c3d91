#include "tools/caffe/image_set.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>
#include <set>
#include <sstream>
#include <system_error>

#include "caffe/core/printable.hpp"
#include "caffe/data/readers/image_list_reader.hpp"
#include "caffe/error.hpp"
#include "caffe/io/text_file.hpp"

namespace caffe::tools {
namespace {

namespace fs = std::filesystem;

bool IsHidden(const fs::path& path) {
  return path.filename().string().starts_with(".");
}

// Returns false for a link to itself, which cannot be read either.
bool IsFolder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::vector<fs::path> SortedEntries(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (!IsHidden(entry.path())) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Links to folders are not followed, because they may form a cycle.
void AddFiles(const fs::path& folder, int label, ImageSet* set) {
  for (const fs::path& path : SortedEntries(folder)) {
    const std::string name = path.lexically_relative(set->root).string();
    if (IsFolder(path)) {
      if (fs::is_symlink(path)) {
        set->left_out.push_back({name, "a link to a folder; put a folder here"});
      } else {
        AddFiles(path, label, set);
      }
    } else {
      set->files.push_back({name, label});
    }
  }
}

// Refuses folders such as "train" and "val": they are subsets of the data, not classes.
void RefuseHalves(const std::string& root, const std::map<int, std::string>& classes) {
  static const std::set<std::string> halves = {"train", "training",   "val",    "valid",
                                               "test",  "validation", "testing"};
  const bool are_halves = std::all_of(classes.begin(), classes.end(),
                                      [](const auto& one) { return halves.count(one.second) > 0; });
  Require(!are_halves, root, ": holds '", classes.begin()->second,
          "', which looks like a part of a set and not like a class; import each part by itself");
}

ImageSet ReadFolder(const std::string& root) {
  ImageSet set{.root = root};
  for (const fs::path& path : SortedEntries(root)) {
    if (!IsFolder(path)) {
      set.left_out.push_back({path.filename().string(), "is next to the folders of the classes"});
      continue;
    }
    const int label = static_cast<int>(set.names.size());
    set.names[label] = path.filename().string();
    Require(!HasControlCharacters(set.names[label]), root, ": the folder '",
            Printable(set.names[label]), "' has control characters in its name; rename it");
    AddFiles(path, label, &set);
  }
  Require(!set.names.empty(), root,
          ": has no folders; give a folder with one folder of images per class, or a list file");
  RefuseHalves(root, set.names);
  Require(!set.files.empty(), root, ": its folders hold no files");
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
  Require(root.empty(), "--root is '", root, "', but ", path, " is no list file; leave --root out");
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
