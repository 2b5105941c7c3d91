// Makes a LabelMap, which holds the names of classes, from a text file.
#include <sstream>

#include "caffe/error.hpp"
#include "caffe/io/text_file.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/proto/caffe.pb.h"
#include "tools/tool_main.hpp"

DEFINE_bool(include_background, false, "Put the class 'none_of_the_above' with label 0 first");
DEFINE_string(delimiter, " ", "What separates the three parts of a line");

namespace caffe::tools {
namespace {

std::vector<std::string> Split(const std::string& line, const std::string& delimiter) {
  Require(!delimiter.empty(), "--delimiter is empty; give at least one character");
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find(delimiter, begin), line.size());
    if (end > begin) parts.push_back(line.substr(begin, end - begin));
    begin = end + delimiter.size();
  }
  return parts;
}

void Add(const std::string& name, int label, const std::string& display_name, LabelMap* map) {
  for (const LabelMapItem& item : map->item()) {
    Require(item.name() != name && item.label() != label, "'", name, "' or label ", label,
            " is there twice");
  }
  LabelMapItem* item = map->add_item();
  item->set_name(name);
  item->set_label(label);
  item->set_display_name(display_name);
}

void CreateLabelMap(const std::string& input, const std::string& output) {
  std::istringstream file(ReadTextFile(input));
  LabelMap map;
  if (FLAGS_include_background) Add("none_of_the_above", 0, "background", &map);
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (line.empty()) continue;
    WithContext(StrCat(input, ":", number), [&] {
      const std::vector<std::string> parts = Split(line, FLAGS_delimiter);
      Require(parts.size() == 3, "'", line, "' has ", parts.size(),
              " parts; a line is: name, label, display name (see --delimiter)");
      std::istringstream text(parts[1]);
      int label = 0;
      Require(static_cast<bool>(text >> label) && text.eof(), "the label '", parts[1],
              "' is not a whole number");
      Add(parts[0], label, parts[2], &map);
    });
  }
  WriteTextProto(output, map);
  LOG(INFO) << "Wrote " << map.item_size() << " classes to " << output;
}

}  // namespace
}  // namespace caffe::tools

int main(int argc, char** argv) {
  return caffe::tools::RunTool(argc, argv,
                               "Makes a LabelMap from lines \"name label display_name\".\n"
                               "Usage: create_label_map [FLAGS] MAPFILE OUTFILE",
                               2, 2, [](const std::vector<std::string>& arguments) {
                                 caffe::tools::CreateLabelMap(arguments[0], arguments[1]);
                               });
}
