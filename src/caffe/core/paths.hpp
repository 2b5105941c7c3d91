// Questions about paths that never throw: what cannot be looked at (a folder that may not be
// entered, a name that is too long) fails where it is opened, with a text of its own.
#pragma once

#include <filesystem>
#include <system_error>

namespace caffe {

// Nothing bears this name. False also where nobody can tell.
inline bool IsMissing(const std::filesystem::path& path) {
  std::error_code unknown;
  return std::filesystem::status(path, unknown).type() == std::filesystem::file_type::not_found;
}

inline bool IsFolder(const std::filesystem::path& path) {
  std::error_code unknown;
  return std::filesystem::is_directory(path, unknown);
}

inline bool IsPlainFile(const std::filesystem::path& path) {
  std::error_code unknown;
  return std::filesystem::is_regular_file(path, unknown);
}

}  // namespace caffe
