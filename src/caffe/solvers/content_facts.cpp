#include "caffe/solvers/content_facts.hpp"

#include <google/protobuf/message.h>

#include <set>

#include "caffe/core/paths.hpp"
#include "caffe/data_supply.hpp"
#include "caffe/error.hpp"
#include "caffe/io/content_mark.hpp"
#include "caffe/io/text_file.hpp"

namespace caffe {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// True if the field does not name an input file: names of blobs and layers, which may equal that of
// a file in the same folder, and output files.
bool NamesNoInput(const FieldDescriptor& field) {
  static const std::set<std::string> fields = {"name",
                                               "type",
                                               "top",
                                               "bottom",
                                               "param",
                                               "include",
                                               "exclude",
                                               "hdf5_output_param",
                                               "save_output_param"};
  return fields.contains(field.name());
}

// The lines of one training; each file is listed once.
class Lines {
 public:
  // Adds each regular file that a text in the message names.
  void AddFiles(const std::string& owner, const Message& message) {
    std::vector<const FieldDescriptor*> fields;
    const google::protobuf::Reflection& reflection = *message.GetReflection();
    reflection.ListFields(message, &fields);
    for (const FieldDescriptor* field : fields) {
      const bool is_text = field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
      const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
      if (!(is_text || is_message) || NamesNoInput(*field)) continue;
      const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
      for (int i = 0; i < count; ++i) {
        if (is_message) {
          AddFiles(owner, field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                               : reflection.GetMessage(message, field));
        } else {
          AddFile(owner, field->name(),
                  field->is_repeated() ? reflection.GetRepeatedString(message, field, i)
                                       : reflection.GetString(message, field));
        }
      }
    }
  }
  void AddFile(const std::string& owner, const std::string& what, const std::string& file) {
    if (!IsPlainFile(file) || !told_.insert(file).second) return;
    const ContentMark mark = SampledMarkOfFile(file);
    Add(owner, StrCat(what, " '", file, "' has ", mark.bytes, " bytes, their hash ", mark.hash));
  }
  void Add(const std::string& owner, const std::string& line) {
    text_ += owner + ": " + line + "\n";
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::set<std::string> told_;
};

void AddLayer(const LayerParameter& layer, Lines* lines) {
  const std::string owner = StrCat("layer '", layer.name(), "'");
  lines->AddFiles(owner, layer);
  if (!layer.has_hdf5_data_param() || !IsPlainFile(layer.hdf5_data_param().source())) return;
  for (const std::string& file : ReadLines(layer.hdf5_data_param().source()))
    lines->AddFile(owner, "file", file);
}

}  // namespace

Fact FactAboutContent(const SolverParameter& param, const std::vector<const Net*>& nets) {
  Lines lines;
  for (const std::string& plugin : param.plugin()) lines.AddFile("solver", "plugin", plugin);
  for (const Net* net : nets) {
    for (const LayerParameter& layer : net->definition().layer()) AddLayer(layer, &lines);
    for (const std::string& plugin : net->definition().plugin())
      lines.AddFile("net", "plugin", plugin);
    for (const auto& layer : net->layers()) {
      const auto* const supply = dynamic_cast<const DataSupply*>(layer.get());
      const std::string content = supply == nullptr ? "" : supply->content();
      if (!content.empty()) lines.Add(StrCat("layer '", layer->name(), "'"), content);
    }
  }
  return {"what the files hold", lines.text()};
}

}  // namespace caffe
