// Opens a database only once per process, for any number of readers.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace caffe::data {

// `Handle` owns an open database (a unique_ptr). The last reader of a folder closes it; others that
// open it meanwhile wait for that.
template <typename Handle>
class OpenOnce {
 public:
  using Database = typename Handle::element_type;

  // open(path) creates the handle if the folder is not open yet.
  template <typename Open>
  std::shared_ptr<Database> Get(const std::string& path, const Open& open) {
    std::error_code error;
    const std::filesystem::path canonical = std::filesystem::canonical(path, error);
    const std::string key = error ? path : canonical.string();
    // The captured key is not const, so that it can be moved without allocating.
    auto release = [this, key = key](Database*) { Release(key); };
    Database* database = nullptr;
    {
      std::lock_guard lock(mutex_);
      if (users_.count(key) == 0) users_.emplace(key, Users{open(path)});
      Users& users = users_.at(key);
      ++users.count;
      database = users.handle.get();
    }
    // Outside the lock, because the deleter runs immediately if allocating the pointer fails.
    return {database, std::move(release)};
  }

 private:
  struct Users {
    Handle handle;
    int count = 0;
  };

  void Release(const std::string& key) {
    std::lock_guard lock(mutex_);
    if (--users_.at(key).count == 0) users_.erase(key);
  }

  std::mutex mutex_;
  std::map<std::string, Users> users_;
};

}  // namespace caffe::data
