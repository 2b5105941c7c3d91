#include "caffe/layer_catalogue.hpp"

#include <algorithm>
#include <sstream>

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

std::string DefaultOf(const FieldDescriptor& field) {
  if (field.is_repeated() || field.message_type() != nullptr) return "";
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

// In lines of at most 100 columns, indented.
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

void PrintMessage(const std::string& name, const Descriptor& message, std::ostream& out) {
  out << name << " {\n";
  size_t width = 0;
  for (int i = 0; i < message.field_count(); ++i) {
    width = std::max(width, message.field(i)->name().size());
  }
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    out << "  " << field.name() << std::string(width - field.name().size() + 2, ' ')
        << TypeOf(field);
    const std::string value = DefaultOf(field);
    if (!value.empty()) out << "  (default " << value << ")";
    out << "\n";
    PrintWrapped(CommentOf(field), width + 4, out);
  }
  out << "}\n";
}

}  // namespace

std::string FormatLayerTypes() {
  std::ostringstream out;
  for (const std::string& type : LayerRegistry::LayerTypeList()) {
    out << type;
    size_t column = type.size();
    for (const std::string& field : LayerRegistry::ParamFields(type)) {
      out << std::string(column < 26 ? 26 - column : 1, ' ') << field;
      column = 26;
    }
    out << "\n";
  }
  return out.str();
}

std::string FormatLayerType(const std::string& type) {
  const std::vector<std::string> fields = LayerRegistry::ParamFields(type);
  std::ostringstream out;
  out << "type: \"" << type << "\"\n";
  if (fields.empty()) out << "This layer has no options of its own.\n";
  for (const std::string& name : fields) {
    const FieldDescriptor* field = LayerParameter::descriptor()->FindFieldByName(name);
    PrintMessage(name, *field->message_type(), out);
  }
  return out.str();
}

}  // namespace caffe
