// Which files a command may write: new ones, and those that it has written itself.
#pragma once

#include <functional>
#include <string>

namespace caffe::tools {

// Throws InvalidArgument if the file exists; names --force.
void RequireNewFile(const std::string& file);

// Throws InvalidArgument if the file exists, is not empty, and `is_own` says of its content that
// another program has written it; IoError if it cannot be read.
void RequireOwnFile(const std::string& file,
                    const std::function<bool(const std::string& content)>& is_own);

// The same for files that begin with `beginning`.
void RequireOwnFile(const std::string& file, const std::string& beginning);

}  // namespace caffe::tools
