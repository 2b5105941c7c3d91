#include "caffe/cuda/algorithm_cache.hpp"

#include <fcntl.h>
#include <glog/logging.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace caffe::cuda {
namespace {

std::string FileOfUser() {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (const std::string file = variable("CAFFE_ALGORITHM_CACHE"); !file.empty()) return file;
  const std::string cache = variable("XDG_CACHE_HOME");
  return (cache.empty() ? variable("HOME") + "/.cache" : cache) + "/cortado/algorithms.tsv";
}

}  // namespace

AlgorithmCache& AlgorithmCache::OfUser() {
  static AlgorithmCache cache(FileOfUser());
  return cache;
}

void AlgorithmCache::Load() {
  if (is_loaded_) return;
  is_loaded_ = true;
  std::ifstream file(file_);
  for (std::string line; std::getline(file, line);) {
    const size_t tab = line.find('\t');
    if (tab != std::string::npos) algorithms_[line.substr(0, tab)] = line.substr(tab + 1);
  }
}

std::optional<std::string> AlgorithmCache::Find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  Load();
  const auto found = algorithms_.find(key);
  if (found == algorithms_.end()) return std::nullopt;
  return found->second;
}

void AlgorithmCache::Store(const std::string& key, const std::string& algorithm) {
  const std::lock_guard lock(mutex_);
  Load();
  algorithms_[key] = algorithm;
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(file_).parent_path(), ignored);
  // One write of one line, which O_APPEND keeps apart from those of other processes.
  const std::string line = key + "\t" + algorithm + "\n";
  const int file = open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const bool is_written =
      file >= 0 && write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  const int error = errno;
  if (file >= 0) close(file);
  if (!is_written) {
    LOG_FIRST_N(WARNING, 1) << file_ << ": cannot be written (" << std::strerror(error)
                            << "); algorithms are measured anew in each run";
  }
}

}  // namespace caffe::cuda
