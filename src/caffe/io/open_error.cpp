#include "caffe/io/open_error.hpp"

#include <cerrno>
#include <filesystem>
#include <map>
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
  const std::string ending = path.extension().string();
  // By what is compared: names without the ending that both have. Sorted, so that the answer does
  // not depend on the file system.
  std::map<std::string, std::string> names;
  for (fs::directory_iterator entry(path.has_parent_path() ? path.parent_path() : ".", error), end;
       !error && entry != end; entry.increment(error)) {
    const fs::path name = entry->path().filename();
    names[(name.extension() == ending ? name.stem() : name).string()] = name.string();
    if (names.size() > kMostNeighbours) return "";
  }
  std::vector<std::string> compared;
  for (const auto& [key, name] : names) compared.push_back(key);
  const auto near = names.find(NearestName(path.stem().string(), compared));
  return near == names.end() ? "" : (path.parent_path() / near->second).string();
}

}  // namespace

IoError OpenError(const std::string& path, int error) {
  const std::string near = error == ENOENT ? NearestPath(path) : "";
  return IoError(StrCat(path, ": cannot open: ", ErrnoText(error),
                        near.empty() ? "" : "; did you mean '" + PrintableLines(near) + "'?"));
}

}  // namespace caffe
