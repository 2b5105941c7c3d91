// Compiled cuDNN plans on disk: compiling takes seconds, loading milliseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace caffe::cuda {

struct StoredPlan {
  std::string name;
  std::vector<uint8_t> bytes;
};

// A folder with a file per key, written completely or not at all. Any number of processes may share
// it. A file that is damaged or belongs to another key is ignored. Thread-safe.
class PlanStore {
 public:
  // An empty folder name stores nothing.
  explicit PlanStore(std::string folder) : folder_(std::move(folder)) {}

  // The folder AlgorithmCache::FileOfUser(".plans").
  static const PlanStore& OfUser();

  std::optional<StoredPlan> Find(const std::string& key) const;
  void Store(const std::string& key, const StoredPlan& plan) const;
  std::string FileOf(const std::string& key) const;

 private:
  const std::string folder_;
};

}  // namespace caffe::cuda
