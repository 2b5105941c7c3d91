#include "caffe/core/field_names.hpp"

namespace caffe {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

std::vector<const FieldDescriptor*> ExtensionsOf(const Descriptor& message) {
  std::vector<const FieldDescriptor*> extensions;
  if (message.extension_range_count() > 0) {
    message.file()->pool()->FindAllExtensions(&message, &extensions);
  }
  return extensions;
}

const FieldDescriptor* FindField(const Descriptor* message, const std::string& name) {
  if (message == nullptr) return nullptr;
  if (const FieldDescriptor* own = message->FindFieldByName(name)) return own;
  for (const FieldDescriptor* extension : ExtensionsOf(*message)) {
    if (extension->name() == name) return extension;
  }
  return nullptr;
}

}  // namespace caffe
