// Fields of messages by the names that prototxts use.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

namespace caffe {

// Fields that plug-ins bring for a message, as options of their layers.
std::vector<const google::protobuf::FieldDescriptor*> ExtensionsOf(
    const google::protobuf::Descriptor& message);

// The field of `message` with this name: its own, or an extension of it by that last name. Null
// when there is none, or no message.
const google::protobuf::FieldDescriptor* FindField(const google::protobuf::Descriptor* message,
                                                   const std::string& name);

}  // namespace caffe
