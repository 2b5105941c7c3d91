// Text files as editors write them: lists, names of classes, definitions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "caffe/export.hpp"

namespace caffe {

// `text` without the byte order mark that editors on Windows put before UTF-8. Throws
// InvalidArgument "SOURCE: ..." for UTF-16, which has zeros between the letters.
CAFFE_EXPORT std::string_view WithoutByteOrderMark(std::string_view text,
                                                   const std::string& source_name);

// What WithoutByteOrderMark() leaves of a file. Throws IoError when it cannot be read.
CAFFE_EXPORT std::string ReadTextFile(const std::string& path);

// Its lines without the blanks at their ends, as names of files are listed; empty ones are left
// out.
CAFFE_EXPORT std::vector<std::string> ReadLines(const std::string& path);

}  // namespace caffe
