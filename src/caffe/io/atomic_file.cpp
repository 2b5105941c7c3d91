#include "caffe/io/atomic_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "caffe/error.hpp"

namespace caffe {
namespace {

namespace fs = std::filesystem;

class FileDescriptor {
 public:
  FileDescriptor(const std::string& path, int flags)
      : value_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  ~FileDescriptor() {
    if (value_ >= 0) ::close(value_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return value_; }

  // Closes early; returns errno, because some file systems report a full disk only here.
  int Close() {
    const int result = ::close(value_);
    value_ = -1;
    return result == 0 ? 0 : errno;
  }

 private:
  int value_;
};

[[noreturn]] void ThrowWriteError(const std::string& path, int error, uint64_t bytes) {
  const bool is_full = error == ENOSPC || error == EDQUOT;
  throw IoError(StrCat(path, ": cannot write ", bytes, " bytes: ", ErrnoText(error),
                       is_full ? "; free space there or choose another folder" : ""));
}

int WriteAll(int file_descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_descriptor, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

}  // namespace

std::string ErrnoText(int error) {
  return std::generic_category().message(error);
}

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  if (path.empty()) throw IoError("cannot write: the file's name is empty; give a path");
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) {
    throw IoError(path + ": cannot write: is a directory; give a file name");
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    in_place_ = true;
    temporary_path_ = path_;
    return;
  }
  if (fs::is_symlink(fs::symlink_status(path, ignored))) {
    path_ = fs::weakly_canonical(path, ignored).string();
  }
  temporary_path_ = StrCat(path_, ".tmp.", ::getpid());
}

AtomicFile::~AtomicFile() {
  if (!committed_ && !in_place_) ::unlink(temporary_path_.c_str());
}

void AtomicFile::Commit() {
  if (in_place_) return;
  FileDescriptor file(temporary_path_, O_RDONLY);
  struct stat old;  // a file that is replaced keeps who may read and write it
  const bool is_replaced = ::stat(path_.c_str(), &old) == 0;
  if (file.get() < 0 || (is_replaced && ::fchmod(file.get(), old.st_mode & 0777) != 0) ||
      ::fsync(file.get()) != 0) {
    const int error = errno;
    throw IoError(StrCat(path_, ": cannot write: ", ErrnoText(error)));
  }
  if (::rename(temporary_path_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    throw IoError(StrCat(path_, ": cannot give the finished file its name: ", ErrnoText(error)));
  }
  committed_ = true;
  // The rename itself is durable only once the folder is. Some file systems cannot sync
  // folders (EINVAL); the file is complete there all the same.
  const std::string folder = fs::path(path_).parent_path().string();
  FileDescriptor directory(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
  if (directory.get() >= 0 && ::fsync(directory.get()) != 0 && errno != EINVAL) {
    const int error = errno;
    throw IoError(StrCat(path_, ": cannot make its folder durable: ", ErrnoText(error)));
  }
}

void WriteFileAtomically(const std::string& path,
                         const std::function<void(const std::string&)>& write) {
  AtomicFile file(path);
  write(file.temporary_path());
  file.Commit();
}

void WriteFileAtomically(const std::string& path, uint64_t bytes,
                         const std::function<int(int)>& write) {
  WriteFileAtomically(path, [&](const std::string& temporary_path) {
    FileDescriptor file(temporary_path, O_WRONLY | O_CREAT | O_TRUNC);
    if (file.get() < 0) {
      const int error = errno;
      throw IoError(StrCat(path, ": cannot create: ", ErrnoText(error)));
    }
    if (const int error = write(file.get()); error != 0) ThrowWriteError(path, error, bytes);
    if (const int error = file.Close(); error != 0) ThrowWriteError(path, error, bytes);
  });
}

void WriteFileAtomically(const std::string& path, std::string_view bytes) {
  WriteFileAtomically(path, bytes.size(),
                      [&](int file_descriptor) { return WriteAll(file_descriptor, bytes); });
}

std::string ReadFile(const std::string& path) {
  FileDescriptor file(path, O_RDONLY);
  if (file.get() < 0) {
    const int error = errno;
    throw IoError(StrCat(path, ": cannot open: ", ErrnoText(error)));
  }
  std::string content;
  char block[1 << 16];
  while (true) {
    const ssize_t count = ::read(file.get(), block, sizeof(block));
    if (count == 0) return content;
    if (count < 0) {
      const int error = errno;
      if (error == EINTR) continue;
      throw IoError(StrCat(path, ": cannot read: ", ErrnoText(error)));
    }
    content.append(block, static_cast<size_t>(count));
  }
}

}  // namespace caffe
