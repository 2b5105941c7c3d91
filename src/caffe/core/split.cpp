#include "caffe/core/split.hpp"

#include <algorithm>

namespace caffe {

std::vector<std::string> SplitByComma(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    const size_t begin = part.find_first_not_of(kBlanks), end = part.find_last_not_of(kBlanks);
    if (begin != part.npos) parts.emplace_back(part.substr(begin, end - begin + 1));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

}  // namespace caffe
