// Comments of fields in the schema.
#pragma once

#include <string>

#include "caffe/proto/caffe.pb.h"

namespace caffe {

// The comments above the field and after it in caffe.proto, joined on one line; empty without any.
std::string CommentOf(const google::protobuf::FieldDescriptor& field);

}  // namespace caffe
