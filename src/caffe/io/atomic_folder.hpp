// Folders that are created completely or not at all, like files by AtomicFile.
#pragma once

#include <string>

#include "caffe/export.hpp"

namespace caffe {

// Fills a folder under the name `<path>.partial`. Commit() makes it durable and renames it to
// `path`; without Commit() the destructor removes it. A process that fills a folder holds a lock on
// it, which ends with the process; the next AtomicFolder of the same path removes databases of
// killed processes, and refuses to start where it finds other files.
class CAFFE_EXPORT AtomicFolder {
 public:
  // Throws InvalidArgument if `path` exists or another process is filling it, IoError if the folder
  // cannot be created.
  explicit AtomicFolder(const std::string& path);
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  // The folder to put the files into.
  const std::string& temporary_path() const { return temporary_path_; }

  // rename, fsync of both folders. The writer must have made the files durable and closed them.
  // Throws IoError.
  void Commit();

 private:
  std::string path_;
  std::string temporary_path_;
  int descriptor_ = -1;  // of the folder; holds the lock
  bool committed_ = false;
};

}  // namespace caffe
