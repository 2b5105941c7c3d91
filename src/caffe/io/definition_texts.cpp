#include "caffe/io/definition_texts.hpp"

#include <string>
#include <vector>

#include "caffe/core/printable.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

void CheckText(const std::string& place, const FieldDescriptor& field, const std::string& text) {
  if (field.name() == "param_str") return;
  Require(!HasControlCharacters(text), place, field.name(), " is '", Printable(text),
          "', which holds control characters; write it without");
}

void Check(const std::string& place, const Message& message);

void CheckField(const std::string& place, const Message& message, const FieldDescriptor& field) {
  const auto& reflection = *message.GetReflection();
  const bool is_text = field.type() == FieldDescriptor::TYPE_STRING;
  const bool is_message = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  // Skips numbers, because there are many of them.
  if ((!is_text && !is_message) || field.is_extension() || field.name() == "blobs") return;
  const int count = field.is_repeated() ? reflection.FieldSize(message, &field) : 1;
  for (int i = 0; i < count; ++i) {
    if (is_text) {
      CheckText(place, field,
                field.is_repeated() ? reflection.GetRepeatedString(message, &field, i)
                                    : reflection.GetString(message, &field));
    } else {
      Check(StrCat(place, field.name(), field.is_repeated() ? StrCat("[", i, "]") : "", "."),
            field.is_repeated() ? reflection.GetRepeatedMessage(message, &field, i)
                                : reflection.GetMessage(message, &field));
    }
  }
}

void Check(const std::string& place, const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) CheckField(place, message, *field);
}

}  // namespace

void CheckTexts(const Message& definition) {
  Check("", definition);
}

}  // namespace caffe
