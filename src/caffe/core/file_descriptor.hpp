// A file that is closed at the end of its scope.
#pragma once

#include <unistd.h>

namespace caffe {

class FileDescriptor {
 public:
  // `value`: a result of open() or a similar call. A negative value is not a file and is not
  // closed.
  explicit FileDescriptor(int value) : value_(value) {}
  ~FileDescriptor() {
    if (*this) ::close(value_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return value_; }
  explicit operator bool() const { return value_ >= 0; }

 private:
  int value_;
};

}  // namespace caffe
