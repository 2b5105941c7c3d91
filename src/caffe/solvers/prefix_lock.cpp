#include "caffe/solvers/prefix_lock.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <mutex>

#include "caffe/core/file_descriptor.hpp"
#include "caffe/core/fork.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"

namespace caffe {

// Uses a lock of fcntl: children created by fork() do not inherit it, NFS supports it, and it tells
// which process holds it. It belongs to the process, so each file is opened only once.
class PrefixLock::File {
 public:
  explicit File(const std::string& prefix) : path_(prefix + ".lock") {
    RequireOwnLink(path_);
    // The holder of the lock may remove the file between our open() and fcntl().
    while (!TryOpen()) continue;
  }
  ~File() {
    struct stat own {};
    // Keeps a file that is not our lock: another file with that name, or the lock of a later run
    // after ours was removed by hand.
    const bool is_own = is_held_ && ::fstat(descriptor_->get(), &own) == 0 &&
                        S_ISREG(own.st_mode) && own.st_size == 0 && IsThere();
    if (is_own) ::unlink(path_.c_str());
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

 private:
  // Returns false if the opened file has been removed.
  bool TryOpen() {
    descriptor_ = std::make_unique<FileDescriptor>(
        ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666));
    if (!*descriptor_) {
      const int error = errno;
      throw IoError(StrCat(path_, ": cannot create: ", ErrnoText(error)));
    }
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    if (::fcntl(descriptor_->get(), F_SETLK, &lock) != 0) {
      if (errno == EACCES || errno == EAGAIN) ThrowInUse();
      return true;  // no locks on this file system
    }
    return is_held_ = IsThere();
  }

  // True if the open file still has this name.
  bool IsThere() const {
    struct stat own {
    }, named{};
    return ::fstat(descriptor_->get(), &own) == 0 && ::stat(path_.c_str(), &named) == 0 &&
           own.st_ino == named.st_ino && own.st_dev == named.st_dev;
  }

  [[noreturn]] void ThrowInUse() const {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    const bool is_known = ::fcntl(descriptor_->get(), F_GETLK, &lock) == 0 &&
                          lock.l_type != F_UNLCK && lock.l_pid > 0;
    throw IoError(StrCat(
        path_, ": another run", is_known ? StrCat(" (process ", lock.l_pid, ")") : "",
        " writes snapshots with this prefix; give this one a snapshot_prefix of its own, or end "
        "the other"));
  }

  const std::string path_;
  std::unique_ptr<FileDescriptor> descriptor_;
  bool is_held_ = false;
};

PrefixLock::PrefixLock(const std::string& prefix) {
  static std::mutex mutex;
  static auto* const held = new std::map<std::string, std::weak_ptr<File>>;
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(prefix, error).lexically_normal();
  const std::lock_guard guard(mutex);
  std::weak_ptr<File>& known = (*held)[path.string()];
  file_ = known.lock();
  if (file_ && is_of_this_process()) return;
  // A forked child's copy of its parent's lock would remove the parent's file.
  known = file_ = std::shared_ptr<File>(new File(prefix), DeleteWhereMade<File>());
}

bool PrefixLock::is_of_this_process() const {
  return std::get_deleter<DeleteWhereMade<File>>(file_)->is_of_this_process();
}

}  // namespace caffe
