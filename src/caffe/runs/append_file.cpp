#include "caffe/runs/append_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"

namespace caffe::runs {
namespace {

// False for a device such as /dev/null, which all processes share.
bool IsFileOfAFolder(int descriptor) {
  struct stat status = {};
  return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

AppendFile::AppendFile(const std::string& path) : path_(path) {
  RequireOwnLink(path);
  descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) Throw("cannot open", errno);
  if (IsFileOfAFolder(descriptor_) && flock(descriptor_, LOCK_EX | LOCK_NB) != 0 &&
      errno == EWOULDBLOCK) {
    close(descriptor_);
    throw IoError(path + ": another process writes to it; give the run another name");
  }
}

AppendFile::~AppendFile() {
  close(descriptor_);
}

void AppendFile::Append(std::string_view piece) {
  const off_t before = lseek(descriptor_, 0, SEEK_END);
  while (!piece.empty()) {
    const ssize_t written = write(descriptor_, piece.data(), piece.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int error = errno;
      // Fails if it is not a regular file; then nothing has to be undone.
      [[maybe_unused]] const int result = ftruncate(descriptor_, before);
      Throw("cannot write", error);
    }
    piece.remove_prefix(static_cast<size_t>(written));
  }
}

void AppendFile::DropTornLine() {
  off_t end = lseek(descriptor_, 0, SEEK_END);
  const off_t before = end;
  char last = '\n';
  while (end > 0 && pread(descriptor_, &last, 1, end - 1) == 1 && last != '\n') --end;
  if (end < before && ftruncate(descriptor_, end) != 0) Throw("cannot repair", errno);
}

void AppendFile::Throw(const char* what, int error) const {
  throw IoError(StrCat(path_, ": ", what, ": ", ErrnoText(error)));
}

}  // namespace caffe::runs
