// Makes names from files safe to print in a log.
#pragma once

#include <string>
#include <string_view>

#include "caffe/export.hpp"

namespace caffe {

// True if part of the text would control a terminal or begin a new line in a log: ASCII control
// characters and, in UTF-8, those of ISO 6429 (U+0080 to U+009F) and Unicode's line separators and
// bidirectional controls.
CAFFE_EXPORT bool HasControlCharacters(std::string_view text);

// `text` with its control characters as "\x1b", so that it can neither begin a new line nor control
// a terminal. Text longer than 200 bytes is cut and ends in "...".
CAFFE_EXPORT std::string Printable(std::string_view text);

// The same for text of several lines and any length: line feeds and tabs stay.
CAFFE_EXPORT std::string PrintableLines(std::string_view text);

// `text` as valid UTF-8, which JSON requires. Invalid bytes, as in names in Latin-1 or GBK, become
// "\xe9".
CAFFE_EXPORT std::string Utf8(std::string_view text);

}  // namespace caffe
