#include "caffe/io/atomic_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"

namespace caffe {
namespace {

namespace fs = std::filesystem;

int OpenFolder(const std::string& path) {
  return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

// Converts "data/db/" to "data/db".
std::string WithoutLastSlash(const std::string& path) {
  const size_t end = path.find_last_not_of('/');
  return end == std::string::npos ? path : path.substr(0, end + 1);
}

// True if LMDB, LevelDB or a converter uses such file names. A power failure may leave any of them.
bool IsOfDatabase(const std::string& name) {
  static const std::set<std::string> kNames = {
      "LOCK", "LOG", "LOG.old", "CURRENT", "labels.txt", "mean.binaryproto", "model_info.prototxt"};
  static const std::set<std::string> kEndings = {".mdb", ".ldb", ".sst", ".log", ".dbtmp"};
  return kNames.count(name) > 0 || kEndings.count(fs::path(name).extension().string()) > 0 ||
         name.starts_with("MANIFEST-") || name.find(".tmp.") != name.npos;
}

// True if a killed process left the folder, and it contains nothing else.
bool IsLeftover(const std::string& folder) {
  std::error_code error;
  if (fs::is_symlink(fs::symlink_status(folder))) return true;  // removes the link, not its target
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const bool is_plain = entry.symlink_status(error).type() == fs::file_type::regular;
    if (!is_plain || !IsOfDatabase(entry.path().filename().string())) return false;
  }
  return !error;
}

// Throws if another process is filling the folder, or if this class did not create it.
void RemoveLeftover(const std::string& temporary_path, const std::string& path) {
  const int descriptor = OpenFolder(temporary_path);
  const bool is_locked =
      descriptor >= 0 && ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  if (descriptor >= 0) ::close(descriptor);
  Require(!is_locked, path, ": another process is writing it, into ", temporary_path,
          "; wait for it, or choose another name");
  if (!fs::exists(fs::symlink_status(temporary_path))) return;
  Require(IsLeftover(temporary_path), path, ": ", temporary_path,
          ", where it would be made, holds other files; move them, or choose another name");
  std::error_code ignored;
  fs::remove_all(temporary_path, ignored);
}

}  // namespace

AtomicFolder::AtomicFolder(const std::string& path)
    : path_(WithoutLastSlash(path)), temporary_path_(path_ + ".partial") {
  Require(!path_.empty(), "cannot write: the folder's name is empty; give a path");
  Require(!fs::exists(fs::symlink_status(path_)), path_,
          ": already exists; remove it or choose another name for the database");
  RemoveLeftover(temporary_path_, path_);
  if (::mkdir(temporary_path_.c_str(), 0777) != 0) {
    const int error = errno;
    throw IoError(StrCat(path_, ": cannot create the folder: ", ErrnoText(error)));
  }
  descriptor_ = OpenFolder(temporary_path_);
  if (descriptor_ >= 0) ::flock(descriptor_, LOCK_EX | LOCK_NB);  // no effect on some file systems
}

AtomicFolder::~AtomicFolder() {
  std::error_code ignored;
  if (!committed_) fs::remove_all(temporary_path_, ignored);
  if (descriptor_ >= 0) ::close(descriptor_);
}

void AtomicFolder::Commit() {
  SyncFolder(temporary_path_, path_);
  if (::rename(temporary_path_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    throw IoError(StrCat(path_, ": cannot give the finished folder its name: ", ErrnoText(error)));
  }
  committed_ = true;
  const std::string parent = fs::path(path_).parent_path().string();
  SyncFolder(parent.empty() ? "." : parent, path_);
}

}  // namespace caffe
