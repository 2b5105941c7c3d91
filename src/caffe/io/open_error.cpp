#include "caffe/io/open_error.hpp"

#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>
#include <vector>

#include "caffe/core/nearest_name.hpp"
#include "caffe/core/printable.hpp"
#include "caffe/io/atomic_file.hpp"

namespace caffe {
namespace {

namespace fs = std::filesystem;

// In folders of more files, which hold data, a similar name means nothing.
constexpr size_t kMostNeighbours = 1000;

// The path in the same folder whose name is most like that of `path`; empty if there is none.
std::string NearestPath(const fs::path& path) {
  std::error_code error;
  std::set<std::string> names;  // sorted, so that the answer does not depend on the file system
  for (fs::directory_iterator entry(path.has_parent_path() ? path.parent_path() : ".", error), end;
       !error && entry != end; entry.increment(error)) {
    names.insert(entry->path().filename().string());
    if (names.size() > kMostNeighbours) return "";
  }
  const std::string near = NearestName(path.filename().string(), {names.begin(), names.end()});
  return names.contains(near) ? (path.parent_path() / near).string() : "";
}

}  // namespace

IoError OpenError(const std::string& path, int error) {
  const std::string near = error == ENOENT ? NearestPath(path) : "";
  return IoError(StrCat(path, ": cannot open: ", ErrnoText(error),
                        near.empty() ? "" : "; did you mean '" + PrintableLines(near) + "'?"));
}

}  // namespace caffe
