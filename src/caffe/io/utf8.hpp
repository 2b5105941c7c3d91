// Texts in messages that others read.
#pragma once

#include <google/protobuf/message.h>

#include "caffe/export.hpp"

namespace caffe {

// Makes each text of `message`, and of the messages in it, UTF-8 (Utf8() of core/printable.hpp).
// Names in definitions need not be; readers of JSON and of proto3 refuse what is not.
CAFFE_EXPORT void MakeUtf8(google::protobuf::Message* message);

}  // namespace caffe
