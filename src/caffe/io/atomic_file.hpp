// Files that appear whole or not at all, whatever happens while they are written.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "caffe/export.hpp"

namespace caffe {

// A file being written beside its final place, as `<path>.tmp.<process id>`. Commit() makes it
// durable and gives it its name; without Commit() the destructor removes it and what `path`
// held before stays. A symbolic link is followed; something that is not a plain file
// (/dev/stdout) is written in place.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Where the writer has to put the bytes.
  const std::string& temporary_path() const { return temporary_path_; }

  // fsync, rename, fsync of the folder. The mode is that of the file that is replaced, or the one
  // that the umask leaves a new file. Throws IoError.
  void Commit();

 private:
  std::string path_;
  std::string temporary_path_;
  bool in_place_ = false;
  bool committed_ = false;
};

// Writes `bytes` as the whole content of `path`.
CAFFE_EXPORT void WriteFileAtomically(const std::string& path, std::string_view bytes);

// Calls `write` with the temporary path, then commits. For libraries that open files themselves.
CAFFE_EXPORT void WriteFileAtomically(
    const std::string& path, const std::function<void(const std::string& temporary_path)>& write);

// Calls `write` with a descriptor open for writing; a non-zero result is taken as errno.
// `bytes` is the expected size, named in the message when the disk is full.
CAFFE_EXPORT void WriteFileAtomically(const std::string& path, uint64_t bytes,
                                      const std::function<int(int file_descriptor)>& write);

// The whole content of a file. Throws IoError "PATH: cannot open: <errno text>".
CAFFE_EXPORT std::string ReadFile(const std::string& path);

// Text of an errno value: "No such file or directory".
CAFFE_EXPORT std::string ErrnoText(int error);

}  // namespace caffe
