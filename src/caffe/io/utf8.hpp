// Makes texts in messages valid UTF-8 for other programs.
#pragma once

#include <google/protobuf/message.h>

#include "caffe/export.hpp"

namespace caffe {

// Converts all texts of `message` and its submessages to UTF-8 (Utf8() of core/printable.hpp).
// Names in definitions need not be UTF-8, but readers of JSON and proto3 reject other bytes.
CAFFE_EXPORT void MakeUtf8(google::protobuf::Message* message);

}  // namespace caffe
