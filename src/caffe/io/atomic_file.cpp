#include "caffe/io/atomic_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "caffe/core/file_descriptor.hpp"
#include "caffe/error.hpp"
#include "caffe/io/open_error.hpp"

namespace caffe {
namespace {

namespace fs = std::filesystem;

FileDescriptor Open(const std::string& path, int flags) {
  return FileDescriptor(::open(path.c_str(), flags | O_CLOEXEC));
}

// Returns six unpredictable letters and digits.
std::string RandomEnding() {
  static constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::random_device source;
  std::uniform_int_distribution<size_t> letter(0, sizeof(kLetters) - 2);
  std::string ending(6, ' ');
  for (char& one : ending) one = kLetters[letter(source)];
  return ending;
}

constexpr std::string_view kMark = ".tmp.";

// Returns "net.caffemodel" for its temporary file "net.caffemodel.tmp.k3x9ab"; empty for other
// files.
std::string FinalName(const std::string& name) {
  const size_t ending = kMark.size() + 6;
  if (name.size() <= ending || name.compare(name.size() - ending, kMark.size(), kMark) != 0) {
    return "";
  }
  return name.substr(0, name.size() - ending);
}

bool IsSameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

void RemoveUnlessLocked(const std::string& path) {
  const FileDescriptor file = Open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  struct stat status;
  const bool is_plain = file && ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode);
  if (is_plain && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(path.c_str());
}

std::string FolderOf(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace

std::string ErrnoText(int error) {
  return std::generic_category().message(error);
}

std::string WriteErrorText(int error) {
  if (error == ENOSPC || error == EDQUOT) {
    return ErrnoText(error) + "; free space there or choose another folder";
  }
  if (error == EFBIG) return ErrnoText(error) + "; raise the limit of file sizes (ulimit -f)";
  return ErrnoText(error);
}

void ThrowWriteError(const std::string& path, int error, uint64_t bytes) {
  throw IoError(StrCat(path, ": cannot write ", bytes, " bytes: ", WriteErrorText(error)));
}

void RequireOwnLink(const std::string& path) {
  struct stat link;
  if (::lstat(path.c_str(), &link) != 0) return;
  if (link.st_uid == ::geteuid() || link.st_uid == 0) return;
  throw IoError(
      path + ": is a link of another user, and is not followed; remove it or choose another name");
}

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  if (path.empty()) throw IoError("cannot write: the file's name is empty; give a path");
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) {
    throw IoError(path + ": cannot write: is a directory; give a file name");
  }
  in_place_ = fs::exists(status) && !fs::is_regular_file(status);
  if (in_place_) {
    OpenInPlace();
  } else {
    if (fs::is_symlink(fs::symlink_status(path, ignored))) {
      RequireOwnLink(path);
      path_ = fs::weakly_canonical(path, ignored).string();
    }
    const std::string own_name = fs::path(path_).filename().string();
    RemoveAbandonedFiles(FolderOf(path_),
                         [&](const std::string& name) { return name == own_name; });
    CreateTemporary();
  }
  if (descriptor_ < 0) {
    const int error = errno;
    throw IoError(StrCat(path_, ": cannot create: ", ErrnoText(error)));
  }
}

// Leaves descriptor_ at -1, and sets errno, if nobody reads the pipe: waiting for a reader could
// block a run.
void AtomicFile::OpenInPlace() {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ >= 0) ::fcntl(descriptor_, F_SETFL, O_WRONLY);
}

// Leaves descriptor_ at -1, and sets errno, if the file cannot be created.
void AtomicFile::CreateTemporary() {
  while (true) {
    temporary_path_ = path_ + std::string(kMark) + RandomEnding();
    descriptor_ =
        ::open(temporary_path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && errno == EEXIST) continue;
    if (descriptor_ < 0) return;
    // A cleanup by another process may have come between the two calls.
    const bool is_taken = ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    struct stat status;
    if (!is_taken && ::fstat(descriptor_, &status) == 0 && status.st_nlink > 0) return;
    ::close(descriptor_);
  }
}

AtomicFile::~AtomicFile() {
  if (!committed_ && !in_place_) ::unlink(temporary_path_.c_str());
  Close();
}

void AtomicFile::Write(std::string_view bytes) {
  const uint64_t wanted = bytes.size();
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) ThrowWriteError(path_, errno, wanted);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void AtomicFile::MakeDurable() {
  if (in_place_ || durable_) return;
  struct stat old;  // a replaced file keeps its permissions
  const bool is_replaced = ::stat(path_.c_str(), &old) == 0;
  if ((is_replaced && ::fchmod(descriptor_, old.st_mode & 0777) != 0) ||
      ::fsync(descriptor_) != 0) {
    const int error = errno;
    throw IoError(StrCat(path_, ": cannot write: ", ErrnoText(error)));
  }
  durable_ = true;
}

void AtomicFile::Commit() {
  if (in_place_) return;
  MakeDurable();
  Rename();
  Close();                             // releases the lock for readers
  SyncFolder(FolderOf(path_), path_);  // until then the rename may be lost
}

void AtomicFile::Close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

void AtomicFile::Rename() {
  struct stat own, named;
  if (::fstat(descriptor_, &own) != 0 || ::lstat(temporary_path_.c_str(), &named) != 0 ||
      !IsSameFile(own, named)) {
    committed_ = true;  // the file with this name is not ours
    throw IoError(StrCat(path_, ": somebody replaced or removed ", temporary_path_,
                         " while it was written; write into a folder that others cannot change"));
  }
  if (::rename(temporary_path_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    throw IoError(StrCat(path_, ": cannot give the finished file its name: ", ErrnoText(error)));
  }
  committed_ = true;
}

void WriteFileAtomically(const std::string& path, std::string_view bytes) {
  AtomicFile file(path);
  file.Write(bytes);
  file.Commit();
}

void RemoveAbandonedFiles(const std::string& folder,
                          const std::function<bool(const std::string& name)>& is_own) {
  // Does not use std::filesystem, which ends the process if its iterator runs out of memory.
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
  if (!entries) return;
  std::vector<std::string> abandoned;
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string final_name = FinalName(entry->d_name);
    if (!final_name.empty() && is_own(final_name)) {
      abandoned.push_back(folder + "/" + entry->d_name);
    }
  }
  for (const std::string& path : abandoned) RemoveUnlessLocked(path);
}

// Some file systems cannot sync folders (EINVAL); their renames are durable anyway.
void SyncFolder(const std::string& folder, const std::string& path) {
  const FileDescriptor descriptor = Open(folder, O_RDONLY | O_DIRECTORY);
  if (descriptor && ::fsync(descriptor.get()) != 0 && errno != EINVAL) {
    const int error = errno;
    throw IoError(StrCat(path, ": cannot make its folder durable: ", WriteErrorText(error)));
  }
}

void MakeFolders(const std::string& path) {
  std::error_code ignored;
  if (path.empty() || fs::exists(path, ignored)) return;
  const std::string parent = FolderOf(path);
  MakeFolders(parent);
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) {
    const int error = errno;
    throw IoError(StrCat(path, ": cannot make the folder: ", WriteErrorText(error)));
  }
  SyncFolder(parent, path);
}

void RequireNoPipe(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode)) {
    throw IoError(path + ": is a pipe, where a file is wanted; write what comes from it to a file");
  }
}

std::string ReadFile(const std::string& path, uint64_t most_bytes) {
  // Non-blocking, because a pipe without a writer could block forever.
  const FileDescriptor file = Open(path, O_RDONLY | O_NONBLOCK);
  if (!file) throw OpenError(path, errno);
  // A file that is not a regular file may be endless (/dev/zero).
  constexpr uint64_t kMostOfADevice = uint64_t{2} << 30;
  struct stat status = {};
  ::fstat(file.get(), &status);
  std::string content;
  char block[1 << 16];
  while (true) {
    const ssize_t count = ::read(file.get(), block, sizeof(block));
    if (count == 0 && content.empty() && S_ISFIFO(status.st_mode)) {
      throw IoError(path + ": is a pipe that nobody writes to; give a file");
    }
    if (count == 0) return content;
    if (count < 0) {
      const int error = errno;
      if (error == EINTR) continue;
      if (error == EAGAIN && ::fcntl(file.get(), F_SETFL, O_RDONLY) == 0) continue;
      throw IoError(StrCat(path, ": cannot read: ", ErrnoText(error)));
    }
    content.append(block, static_cast<size_t>(count));
    if (content.size() > most_bytes) {
      throw IoError(StrCat(path, ": has more than ", most_bytes,
                           " bytes; it is another file than was wanted"));
    }
    if (!S_ISREG(status.st_mode) && content.size() > kMostOfADevice) {
      throw IoError(path + ": is not a plain file, and has no end within 2 GiB; give a file");
    }
  }
}

}  // namespace caffe
