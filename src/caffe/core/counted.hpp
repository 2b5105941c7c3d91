// Numbers with nouns, for messages.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include "caffe/error.hpp"

namespace caffe {

// "1 file" or "2 files".
std::string Counted(std::integral auto count, std::string_view noun) {
  return StrCat(count, " ", noun, count == 1 ? "" : "s");
}

// The same for plurals that do not end in s alone: "1 class" or "2 classes".
std::string Counted(std::integral auto count, std::string_view noun, std::string_view plural) {
  return StrCat(count, " ", count == 1 ? noun : plural);
}

}  // namespace caffe
