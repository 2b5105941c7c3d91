#include "tools/caffe/own_files.hpp"

#include <filesystem>
#include <fstream>

#include "caffe/core/paths.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"

namespace caffe::tools {
namespace {

// At most `size` bytes.
std::string BeginningOf(const std::string& file, size_t size) {
  std::ifstream stream(file, std::ios::binary);
  std::string bytes(size, '\0');
  stream.read(bytes.data(), static_cast<std::streamsize>(size));
  if (!stream && !stream.eof()) throw IoError(file + ": cannot be read");
  bytes.resize(static_cast<size_t>(stream.gcount()));
  return bytes;
}

void RequireOwn(bool is_own, const std::string& file) {
  Require(is_own, file,
          ": already exists, and this command has not written it; give another name or folder");
}

}  // namespace

void RequireNewFile(const std::string& file) {
  std::error_code unknown;
  Require(!std::filesystem::exists(file, unknown), file,
          ": already exists; give --force to overwrite it");
}

void RequireOwnFile(const std::string& file,
                    const std::function<bool(const std::string& content)>& is_own) {
  if (!IsPlainFile(file)) return;
  const std::string content = ReadFile(file);
  RequireOwn(content.empty() || is_own(content), file);
}

void RequireOwnFile(const std::string& file, const std::string& beginning) {
  if (!IsPlainFile(file)) return;
  const std::string found = BeginningOf(file, beginning.size());
  RequireOwn(found.empty() || found == beginning, file);
}

}  // namespace caffe::tools
