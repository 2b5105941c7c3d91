#include "caffe/layer_catalogue.hpp"

#include <algorithm>
#include <sstream>

#include "caffe/core/field_names.hpp"
#include "caffe/graph/schema_comments.hpp"
#include "caffe/layer_factory.hpp"

namespace caffe {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;

std::string ValuesOf(const EnumDescriptor& type) {
  std::string values;
  for (int i = 0; i < type.value_count(); ++i) {
    values += (i == 0 ? "" : " | ") + type.value(i)->name();
  }
  return values;
}

std::string TypeOf(const FieldDescriptor& field) {
  std::string type = field.enum_type() != nullptr      ? ValuesOf(*field.enum_type())
                     : field.message_type() != nullptr ? field.message_type()->name()
                                                       : field.type_name();
  return field.is_repeated() ? "repeated " + type : type;
}

// Empty if the schema has no default; layers then check whether the field is set.
std::string DefaultOf(const FieldDescriptor& field) {
  if (!field.has_default_value() || field.message_type() != nullptr) return "";
  std::ostringstream text;
  text << std::boolalpha;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      text << field.default_value_bool();
      break;
    case FieldDescriptor::CPPTYPE_INT32:
      text << field.default_value_int32();
      break;
    case FieldDescriptor::CPPTYPE_UINT32:
      text << field.default_value_uint32();
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      text << field.default_value_int64();
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      text << field.default_value_uint64();
      break;
    case FieldDescriptor::CPPTYPE_FLOAT:
      text << field.default_value_float();
      break;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      text << field.default_value_double();
      break;
    case FieldDescriptor::CPPTYPE_ENUM:
      text << field.default_value_enum()->name();
      break;
    case FieldDescriptor::CPPTYPE_STRING:
      text << '"' << field.default_value_string() << '"';
      break;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      break;
  }
  return text.str();
}

// Prints `text` in lines of at most 100 columns, indented.
void PrintWrapped(const std::string& text, size_t indent, std::ostream& out) {
  std::istringstream words(text);
  size_t column = 0;
  for (std::string word; words >> word; column += word.size() + 1) {
    if (column > 0 && column + word.size() > 100) {
      out << "\n";
      column = 0;
    }
    if (column == 0) {
      out << std::string(indent, ' ');
      column = indent;
    } else {
      out << ' ';
    }
    out << word;
  }
  if (column > 0) out << "\n";
}

void Print(const LayerOptions& message, std::ostream& out) {
  out << message.field << " {\n";
  size_t width = 0;
  for (const LayerOption& option : message.options) width = std::max(width, option.name.size());
  for (const LayerOption& option : message.options) {
    out << "  " << option.name << std::string(width - option.name.size() + 2, ' ') << option.type;
    if (!option.default_value.empty()) out << "  (default " << option.default_value << ")";
    out << "\n";
    PrintWrapped(option.description, width + 4, out);
  }
  out << "}\n";
}

}  // namespace

std::vector<LayerOptions> OptionsOfLayer(const std::string& type) {
  std::vector<LayerOptions> fields;
  for (const std::string& name : LayerRegistry::ParamFields(type)) {
    const Descriptor& message = *FindField(LayerParameter::descriptor(), name)->message_type();
    LayerOptions& field = fields.emplace_back(LayerOptions{name, {}});
    for (int i = 0; i < message.field_count(); ++i) {
      const FieldDescriptor& option = *message.field(i);
      field.options.push_back(
          {option.name(), TypeOf(option), DefaultOf(option), CommentOf(option)});
    }
  }
  return fields;
}

std::string FormatLayerTypes() {
  std::ostringstream out;
  for (const std::string& type : LayerRegistry::LayerTypeList()) {
    out << type;
    size_t column = type.size();
    for (const std::string& field : LayerRegistry::ParamFields(type)) {
      out << std::string(column < 26 ? 26 - column : 1, ' ') << field;
      column = 26;
    }
    out << (LayerRegistry::IsRefused(type) ? "  (not supported)\n" : "\n");
  }
  return out.str();
}

std::string FormatLayerType(const std::string& type) {
  const std::vector<LayerOptions> fields = OptionsOfLayer(type);
  std::ostringstream out;
  out << "type: \"" << type << "\"\n";
  if (LayerRegistry::IsRefused(type)) {
    out << "Not supported: a net with such a layer is refused, and told what to do instead.\n";
  }
  if (fields.empty()) out << "This layer has no options of its own.\n";
  for (const LayerOptions& field : fields) Print(field, out);
  return out.str();
}

}  // namespace caffe
