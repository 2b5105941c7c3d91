// Text files written by editors: lists, class names, definitions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "caffe/export.hpp"

namespace caffe {

// Returns `text` without the byte order mark that Windows editors add to UTF-8. Throws
// InvalidArgument "SOURCE: ..." for UTF-16, which contains zero bytes.
CAFFE_EXPORT std::string_view WithoutByteOrderMark(std::string_view text,
                                                   const std::string& source_name);

// Reads a file without its byte order mark. Throws IoError if it cannot be read.
CAFFE_EXPORT std::string ReadTextFile(const std::string& path);

// Returns its lines without leading and trailing blanks, as in lists of file names; skips empty
// lines.
CAFFE_EXPORT std::vector<std::string> ReadLines(const std::string& path);

}  // namespace caffe
