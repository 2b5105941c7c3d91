#include "caffe/io/text_file.hpp"

#include <sstream>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"

namespace caffe {

std::string_view WithoutByteOrderMark(std::string_view text, const std::string& source_name) {
  constexpr std::string_view kUtf8 = "\xef\xbb\xbf", kUtf16 = "\xff\xfe", kUtf16Big = "\xfe\xff";
  Require(!text.starts_with(kUtf16) && !text.starts_with(kUtf16Big), source_name,
          ": the text is in UTF-16, as Notepad's encoding 'Unicode' writes it; save it as UTF-8");
  if (text.starts_with(kUtf8)) text.remove_prefix(kUtf8.size());
  return text;
}

std::string ReadTextFile(const std::string& path) {
  return std::string(WithoutByteOrderMark(ReadFile(path), path));
}

std::vector<std::string> ReadLines(const std::string& path) {
  std::vector<std::string> lines;
  std::istringstream text(ReadTextFile(path));
  for (std::string line; std::getline(text, line);) {
    const size_t last = line.find_last_not_of(" \t\r");
    if (last != std::string::npos) lines.push_back(line.substr(0, last + 1));
  }
  return lines;
}

}  // namespace caffe
