// Files that appear whole or not at all, whatever happens while they are written.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "caffe/export.hpp"

namespace caffe {

// A file being written beside its final place, as `<path>.tmp.<six random letters>`. Commit() makes
// it durable and gives it its name; without Commit() the destructor removes it and what `path` held
// before stays. A symbolic link is followed; something that is not a plain file (/dev/stdout) is
// written in place.
//
// Nobody can have put a file or a link under the temporary name before (O_EXCL), and the bytes go
// through the descriptor. The writer holds a lock on the file, which ends with its process: so what
// a killed process left can be told from what a living one writes, and is removed by the next
// AtomicFile of the same path.
class CAFFE_EXPORT AtomicFile {
 public:
  // Throws IoError "PATH: cannot create: <errno text>".
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::string& path() const { return path_; }

  // Where the bytes go: open for reading and writing, at the file's beginning. -1 after Commit().
  int descriptor() const { return descriptor_; }

  // Appends. Throws IoError, which says how large the file would have been when the disk is full.
  void Write(std::string_view bytes);

  // fsync, rename, fsync of the folder. The mode is that of the file that is replaced, or the one
  // that the umask leaves a new file. Throws IoError.
  void Commit();

  // The first half of Commit(): the bytes are on the disk, under the temporary name. Several files
  // that belong together are all made durable before the first gets its name.
  void MakeDurable();

 private:
  void OpenInPlace();
  void CreateTemporary();
  void Rename();
  void Close();

  std::string path_;
  std::string temporary_path_;
  int descriptor_ = -1;
  bool in_place_ = false;
  bool durable_ = false;
  bool committed_ = false;
};

// Writes `bytes` as the whole content of `path`.
CAFFE_EXPORT void WriteFileAtomically(const std::string& path, std::string_view bytes);

// Removes the temporary files that killed processes left for files of `folder` whose names satisfy
// `is_own`. Those of living processes stay, and all where the file system has no locks.
void RemoveAbandonedFiles(const std::string& folder,
                          const std::function<bool(const std::string& name)>& is_own);

// Makes the names in a folder durable, `path` among them. Throws IoError, which names `path`.
void SyncFolder(const std::string& folder, const std::string& path);

// Makes a folder and those above it that are missing, and makes them durable: a file in a folder
// whose own name is lost is lost, too. Throws IoError.
CAFFE_EXPORT void MakeFolders(const std::string& path);

// "model: cannot write 400 bytes: No space left on device; free space there or ...".
[[noreturn]] void ThrowWriteError(const std::string& path, int error, uint64_t bytes);

// Text of an errno value of a write, with advice: "No space left on device; free space there or
// ...".
std::string WriteErrorText(int error);

// Throws IoError where the path is a link of another user: whoever put it there, perhaps where a
// snapshot is to come, chose what would be overwritten. Links of the user's own and root's are
// fine.
void RequireOwnLink(const std::string& path);

// The whole content of a file, or of a pipe that somebody writes to. Throws IoError "PATH: cannot
// open: <errno text>", and where there are more than `most_bytes`.
CAFFE_EXPORT std::string ReadFile(const std::string& path, uint64_t most_bytes = UINT64_MAX);

// Throws IoError where the path is a pipe: to open one waits for somebody who writes to it, perhaps
// for ever.
CAFFE_EXPORT void RequireNoPipe(const std::string& path);

// Text of an errno value: "No such file or directory".
CAFFE_EXPORT std::string ErrnoText(int error);

}  // namespace caffe
