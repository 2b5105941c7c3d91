// Folders that appear whole or not at all, as AtomicFile does for files.
#pragma once

#include <string>

namespace caffe {

// A folder being filled beside its final place, as `<path>.partial`. Commit() makes it durable and
// gives it its name; without Commit() the destructor removes it. What a killed process left is
// removed by the next AtomicFolder of the same path: whoever fills a folder holds a lock on it,
// which ends with the process.
class AtomicFolder {
 public:
  // Throws InvalidArgument when `path` exists or another process is filling it, IoError when the
  // folder cannot be made.
  explicit AtomicFolder(const std::string& path);
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  // Where the files have to be put.
  const std::string& temporary_path() const { return temporary_path_; }

  // rename, fsync of both folders. The files' own bytes are the writer's to make durable, and it
  // has closed them. Throws IoError.
  void Commit();

 private:
  std::string path_;
  std::string temporary_path_;
  int descriptor_ = -1;  // of the folder; holds the lock
  bool committed_ = false;
};

}  // namespace caffe
