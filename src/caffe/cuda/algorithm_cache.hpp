// Which algorithm was the fastest for an op and its shapes: measured once per machine.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace caffe::cuda {

// A text file with a line "key<tab>algorithm" per measurement. Any number of processes may share
// it: each appends whole lines, and the last line of a key counts. A file that cannot be read or
// written costs measurements, no more. Calls from several threads are in order.
class AlgorithmCache {
 public:
  explicit AlgorithmCache(std::string file) : file_(std::move(file)) {}

  // CAFFE_ALGORITHM_CACHE, else cortado/algorithms.tsv in XDG_CACHE_HOME or ~/.cache.
  static AlgorithmCache& OfUser();

  std::optional<std::string> Find(const std::string& key);
  void Store(const std::string& key, const std::string& algorithm);

 private:
  void Load();

  const std::string file_;
  std::mutex mutex_;
  bool is_loaded_ = false;
  std::map<std::string, std::string> algorithms_;
};

}  // namespace caffe::cuda
