// PrefixLock: lets one process at a time write snapshots with a prefix.
#pragma once

#include <memory>
#include <string>

namespace caffe {

// Holds <prefix>.lock during its lifetime; solvers of this process share it. The lock ends with the
// process, even if it is killed. Does nothing on a file system without locks.
class PrefixLock {
 public:
  // Throws IoError, naming the other process, if it holds the lock; does not wait.
  explicit PrefixLock(const std::string& prefix);
  // False in a child created by fork(): its parent holds the lock.
  bool is_of_this_process() const;

 private:
  class File;
  std::shared_ptr<File> file_;
};

}  // namespace caffe
