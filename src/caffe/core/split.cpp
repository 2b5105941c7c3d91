#include "caffe/core/split.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace caffe {
namespace {

constexpr std::string_view kBlanks = " \t";

// Without blanks around it.
std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks), end = text.find_last_not_of(kBlanks);
  return begin == text.npos ? std::string_view() : text.substr(begin, end - begin + 1);
}

bool IsFile(std::string_view path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

// The first path of the list, and the number of characters that it takes: the longest beginning of
// the list that is a file, else the part before the first comma.
std::pair<std::string_view, size_t> FirstPath(std::string_view list) {
  size_t end = std::min(list.find(','), list.size());
  std::pair<std::string_view, size_t> first(Trimmed(list.substr(0, end)), end);
  while (true) {
    const std::string_view whole = list.substr(0, end);
    for (const std::string_view path : {Trimmed(whole), whole}) {
      if (IsFile(path)) first = {path, end};
    }
    if (end == list.size()) return first;
    end = std::min(list.find(',', end + 1), list.size());
  }
}

}  // namespace

std::vector<std::string> SplitByComma(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = Trimmed(text.substr(0, comma));
    if (!part.empty()) parts.emplace_back(part);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

std::vector<std::string> SplitPaths(std::string_view text) {
  std::vector<std::string> paths;
  while (!text.empty()) {
    const auto [path, size] = FirstPath(text);
    if (!path.empty()) paths.emplace_back(path);
    text.remove_prefix(std::min(size + 1, text.size()));
  }
  return paths;
}

std::string JoinByComma(const std::vector<std::string>& names) {
  std::string joined;
  for (const std::string& name : names) joined += (joined.empty() ? "" : ", ") + name;
  return joined;
}

}  // namespace caffe
