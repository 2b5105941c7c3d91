// Files that are written completely or not at all, whatever happens meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "caffe/export.hpp"

namespace caffe {

// Writes a file in its final folder as `<path>.tmp.<six random letters>`. Commit() makes it durable
// and renames it to `path`; without Commit() the destructor removes it and `path` stays unchanged.
// A symbolic link is followed; a file that is not a regular file (/dev/stdout) is written in place.
//
// Nobody can have created a file or link with the temporary name before (O_EXCL), and all writes go
// through the descriptor. The writer holds a lock on the file, which ends with its process, so that
// files left by a killed process can be recognised; the next AtomicFile of the same path removes
// them.
class CAFFE_EXPORT AtomicFile {
 public:
  // Throws IoError "PATH: cannot create: <errno text>".
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::string& path() const { return path_; }

  // The file, open for reading and writing, at its beginning. -1 after Commit().
  int descriptor() const { return descriptor_; }

  // Appends. If the disk is full, the IoError contains the size of the write.
  void Write(std::string_view bytes);

  // fsync, rename, fsync of the folder. The mode is that of the replaced file, or for a new file
  // the umask's. Throws IoError.
  void Commit();

  // The first half of Commit(): makes the bytes durable under the temporary name. For a set of
  // files, call it on all before the first Commit().
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

// Writes `bytes` as the complete contents of `path`.
CAFFE_EXPORT void WriteFileAtomically(const std::string& path, std::string_view bytes);

// Removes the temporary files of killed processes in `folder` whose final names satisfy `is_own`.
// Keeps those of running processes, and all of them on a file system without locks.
void RemoveAbandonedFiles(const std::string& folder,
                          const std::function<bool(const std::string& name)>& is_own);

// Makes the names in a folder durable, including that of `path`. Throws IoError, which names
// `path`.
void SyncFolder(const std::string& folder, const std::string& path);

// Creates a folder and its missing parents, and makes them durable, because a file is lost if its
// folder's name is lost. Throws IoError.
CAFFE_EXPORT void MakeFolders(const std::string& path);

// Text such as "model: cannot write 400 bytes: No space left on device; free space there or ...".
[[noreturn]] CAFFE_EXPORT void ThrowWriteError(const std::string& path, int error, uint64_t bytes);

// Text for the errno value of a write, with advice: "No space left on device; free space there or
// ...".
std::string WriteErrorText(int error);

// Throws IoError if the path is a link of another user, who could have created it, where a snapshot
// will be written, to choose the file to be overwritten. Links of the user and of root are allowed.
void RequireOwnLink(const std::string& path);

// Returns the contents of a file, or of a pipe that has a writer. Throws IoError "PATH: cannot
// open: <errno text>", or if there are more than `most_bytes`.
CAFFE_EXPORT std::string ReadFile(const std::string& path, uint64_t most_bytes = UINT64_MAX);

// Throws IoError if the path is a pipe, because opening one waits for a writer, possibly forever.
CAFFE_EXPORT void RequireNoPipe(const std::string& path);

// Text of an errno value: "No such file or directory".
CAFFE_EXPORT std::string ErrnoText(int error);

}  // namespace caffe
