// AppendFile: a file to which complete pieces are appended.
#pragma once

#include <string>
#include <string_view>

namespace caffe::runs {

// Each piece is written immediately, so that a killed process leaves complete pieces; a piece that
// does not fit on the disk is removed. Single-threaded.
class AppendFile {
 public:
  // Creates the file if it is missing. Throws IoError, also if another process appends to it.
  explicit AppendFile(const std::string& path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // Throws IoError, and then leaves the file unchanged.
  void Append(std::string_view piece);
  // Removes an incomplete last line, which a machine failure may leave.
  void DropTornLine();

 private:
  [[noreturn]] void Throw(const char* what, int error) const;

  const std::string path_;
  int descriptor_ = -1;
};

}  // namespace caffe::runs
