#include "tools/caffe/class_names.hpp"

#include <sstream>

#include "caffe/core/printable.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::tools {
namespace {

// A LabelMap begins with its first item; no class is called so.
bool IsLabelMap(const std::string& text) {
  std::istringstream stream(text);
  std::string word;
  stream >> word;
  return word == "item" || word == "item{";
}

}  // namespace

ClassNames::ClassNames(const std::string& file) {
  if (file.empty()) return;
  const std::string text = ReadFile(file);
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
}

std::string ClassNames::Of(int number) const {
  const auto found = names_.find(number);
  return found == names_.end() ? std::to_string(number) : found->second;
}

}  // namespace caffe::tools
