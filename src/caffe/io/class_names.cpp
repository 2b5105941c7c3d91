#include "caffe/io/class_names.hpp"

#include <sstream>

#include "caffe/core/printable.hpp"
#include "caffe/error.hpp"
#include "caffe/io/text_file.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {
namespace {

constexpr int kMostClasses = 1 << 20;

// After comments, a LabelMap starts with its first item; "item" may also be a class name.
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

std::vector<std::string> NamesOfMap(const std::string& text, const std::string& file) {
  LabelMap map;
  ParseTextProto(text, file, &map);
  std::vector<std::string> names;
  for (const LabelMapItem& item : map.item()) {
    Require(item.label() >= 0 && item.label() < kMostClasses, file, ": '", item.name(),
            "' has the label ", item.label(), "; labels are from 0 to ", kMostClasses - 1);
    const auto label = static_cast<size_t>(item.label());
    if (names.size() <= label) names.resize(label + 1);
    names[label] = item.has_display_name() ? item.display_name() : item.name();
  }
  return names;
}

}  // namespace

ClassNames::ClassNames(const std::string& file) {
  const std::string text = ReadTextFile(file);
  is_map_ = IsLabelMap(text);
  if (is_map_) {
    names_ = NamesOfMap(text, file);
    return;
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    names_.push_back(line);
  }
}

std::string ClassNames::Of(int number) const {
  const bool is_named = number >= 0 && static_cast<size_t>(number) < names_.size();
  if (!is_named || names_[static_cast<size_t>(number)].empty()) return std::to_string(number);
  return Printable(names_[static_cast<size_t>(number)]);
}

}  // namespace caffe
