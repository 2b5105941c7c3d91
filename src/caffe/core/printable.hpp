// Names from files, made fit for a log.
#pragma once

#include <string>
#include <string_view>

#include "caffe/export.hpp"

namespace caffe {

// Whether a terminal would obey a part of the text, or a log show it as another line: ASCII's
// control characters and, in UTF-8, those of ISO 6429 (U+0080 to U+009F) and Unicode's that end a
// line or turn its direction.
CAFFE_EXPORT bool HasControlCharacters(std::string_view text);

// `text` with its control characters as "\x1b", so that it can neither begin a line of its own nor
// steer a terminal; after 200 bytes it ends in "...".
CAFFE_EXPORT std::string Printable(std::string_view text);

// The same for text of several lines, as long as it likes: line feeds and tabs stay.
CAFFE_EXPORT std::string PrintableLines(std::string_view text);

// `text` as UTF-8, without which nobody reads JSON: bytes that are none, as of names in Latin-1 or
// GBK, become "\xe9".
CAFFE_EXPORT std::string Utf8(std::string_view text);

}  // namespace caffe
