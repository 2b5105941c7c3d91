#include "caffe/io/utf8.hpp"

#include <string>
#include <vector>

#include "caffe/core/printable.hpp"

namespace caffe {

using google::protobuf::FieldDescriptor;

void MakeUtf8(google::protobuf::Message* message) {
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    const bool is_text = field->type() == FieldDescriptor::TYPE_STRING;
    if (!is_text && field->message_type() == nullptr) continue;
    if (!field->is_repeated()) {
      is_text ? reflection.SetString(message, field, Utf8(reflection.GetString(*message, field)))
              : MakeUtf8(reflection.MutableMessage(message, field));
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(*message, field); ++i) {
      is_text ? reflection.SetRepeatedString(message, field, i,
                                             Utf8(reflection.GetRepeatedString(*message, field, i)))
              : MakeUtf8(reflection.MutableRepeatedMessage(message, field, i));
    }
  }
}

}  // namespace caffe
