// AppendFile: a file that grows by whole pieces.
#pragma once

#include <string>
#include <string_view>

namespace caffe::runs {

// Each piece is written at once, so that a process that is killed leaves whole ones; one that does
// not fit on the disk is taken back. One thread.
class AppendFile {
 public:
  // Made if it is missing. Throws IoError, also where another process appends to it.
  explicit AppendFile(const std::string& path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // Throws IoError; the file is then as it was.
  void Append(std::string_view piece);
  // Cuts off what follows the last newline, which a machine that failed may have left.
  void DropTornLine();

 private:
  [[noreturn]] void Throw(const char* what, int error) const;

  const std::string path_;
  int descriptor_ = -1;
};

}  // namespace caffe::runs
