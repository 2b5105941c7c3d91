#include "tools/caffe/class_names.hpp"

#include <sstream>

#include "caffe/core/printable.hpp"
#include "caffe/io/text_file.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::tools {
namespace {

// After comments, a LabelMap begins with its first item; a class may have the name "item".
bool IsLabelMap(const std::string& text) {
  std::istringstream lines(text);
  std::string code;
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos || line[begin] == '#') continue;
    code += line.substr(begin) + "\n";
    if (!code.starts_with("item")) return false;
    const size_t after = code.find_first_not_of(" \t\r\n", 4);
    if (after != std::string::npos) return code[after] == '{' || code[after] == ':';
  }
  return false;
}

}  // namespace

ClassNames::ClassNames(const std::string& file) {
  if (file.empty()) return;
  const std::string text = ReadTextFile(file);
  if (IsLabelMap(text)) {
    LabelMap map;
    ParseTextProto(text, file, &map);
    for (const LabelMapItem& item : map.item()) {
      names_[item.label()] = Printable(item.has_display_name() ? item.display_name() : item.name());
    }
    return;
  }
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line); ++number) {
    if (line.ends_with('\r')) line.pop_back();
    names_[number] = Printable(line);
  }
  num_lines_ = number;
}

std::string ClassNames::Of(int number) const {
  const auto found = names_.find(number);
  return found == names_.end() ? std::to_string(number) : found->second;
}

}  // namespace caffe::tools
