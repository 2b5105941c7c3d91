#include "tools/caffe/own_files.hpp"

#include "caffe/core/paths.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"

namespace caffe::tools {

void RequireOwnFile(const std::string& file,
                    const std::function<bool(const std::string& content)>& is_own) {
  if (!IsPlainFile(file)) return;
  const std::string content = ReadFile(file);
  Require(content.empty() || is_own(content), file,
          ": already exists, and this command has not written it; give another name or folder");
}

void RequireOwnFile(const std::string& file, const std::string& beginning) {
  RequireOwnFile(file, [&](const std::string& content) { return content.starts_with(beginning); });
}

}  // namespace caffe::tools
