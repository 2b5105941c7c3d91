// PrefixLock: one process at a time writes snapshots with a prefix.
#pragma once

#include <memory>
#include <string>

namespace caffe {

// Holds <prefix>.lock as long as it lives; solvers of this process share it. It ends with the
// process, however that ends. Where the file system has no locks, there is none.
class PrefixLock {
 public:
  // Throws IoError, which names the other process, where that holds it; waits for nothing.
  explicit PrefixLock(const std::string& prefix);
  // Not in a child that fork() made: its parent has the lock.
  bool is_of_this_process() const;

 private:
  class File;
  std::shared_ptr<File> file_;
};

}  // namespace caffe
