// Fields of messages by the names that prototxts use.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

namespace caffe {

// Extensions of `message` that plug-ins define as options of their layers.
std::vector<const google::protobuf::FieldDescriptor*> ExtensionsOf(
    const google::protobuf::Descriptor& message);

// Returns the field of `message` with this name: its own field, or an extension whose last name
// component is `name`. Null if there is none or `message` is null.
const google::protobuf::FieldDescriptor* FindField(const google::protobuf::Descriptor* message,
                                                   const std::string& name);

}  // namespace caffe
