// What the schema's comments say of its fields.
#pragma once

#include <string>

#include "caffe/proto/caffe.pb.h"

namespace caffe {

// The comment above the field and the one behind it in caffe.proto, on one line; empty without any.
std::string CommentOf(const google::protobuf::FieldDescriptor& field);

}  // namespace caffe
