#include "caffe/data/readers/image_folder.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "caffe/core/paths.hpp"
#include "caffe/core/printable.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

namespace fs = std::filesystem;

bool IsHidden(const fs::path& path) {
  return path.filename().string().starts_with(".");
}

std::vector<fs::path> SortedEntries(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!IsHidden(entry->path())) paths.push_back(entry->path());
  }
  if (error) throw IoError(StrCat(folder.string(), ": cannot list its files: ", error.message()));
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Links to folders are not followed, because they may form a cycle.
void AddFiles(const fs::path& folder, int label, ImageFolder* set) {
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
void RefuseHalves(const ImageFolder& set) {
  static const std::set<std::string> halves = {"train", "training",   "val",    "valid",
                                               "test",  "validation", "testing"};
  if (set.classes.empty()) return;
  const bool are_halves =
      std::all_of(set.classes.begin(), set.classes.end(),
                  [](const std::string& name) { return halves.count(name) > 0; });
  Require(!are_halves, set.root, ": holds '", set.classes.front(),
          "', which looks like a part of a set and not like a class; use each part by itself");
}

}  // namespace

ImageFolder ListImageFolder(const std::string& root) {
  ImageFolder set{.root = root};
  for (const fs::path& path : SortedEntries(root)) {
    const std::string name = path.filename().string();
    if (!IsFolder(path)) {
      set.left_out.push_back({name, "is next to the folders of the classes"});
      continue;
    }
    Require(!HasControlCharacters(name), root, ": the folder '", Printable(name),
            "' has control characters in its name; rename it");
    const int label = static_cast<int>(set.classes.size());
    set.classes.push_back(name);
    AddFiles(path, label, &set);
  }
  RefuseHalves(set);
  return set;
}

}  // namespace caffe::data
