// Questions about paths that never throw: what cannot be looked at (a folder that may not be
// entered, a name that is too long) fails where it is opened, with a text of its own.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
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

// Where programs keep what they can make again: $XDG_CACHE_HOME, else $HOME/.cache; empty where
// neither is an absolute path (XDG Base Directory Specification).
inline std::string CacheFolder() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return cache;
  const char* const home = std::getenv("HOME");
  return home != nullptr && home[0] == '/' ? std::string(home) + "/.cache" : "";
}

}  // namespace caffe
