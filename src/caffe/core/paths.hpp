// Queries about paths that never throw. A path that cannot be examined (a folder without
// permission, a name that is too long) fails later, with its own message, when it is opened.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace caffe {

// True if no file has this name. False also if that is unknown.
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

// Folder for caches: $XDG_CACHE_HOME, else $HOME/.cache; empty if neither is an absolute path (XDG
// Base Directory Specification).
inline std::string CacheFolder() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return cache;
  const char* const home = std::getenv("HOME");
  return home != nullptr && home[0] == '/' ? std::string(home) + "/.cache" : "";
}

}  // namespace caffe
