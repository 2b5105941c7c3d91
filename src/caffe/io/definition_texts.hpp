// Checks texts in definitions.
#pragma once

#include <google/protobuf/message.h>

namespace caffe {

// Throws InvalidArgument if a text of a net or a solver contains control characters: names, paths
// and choices appear in logs and messages, where a line break or an escape sequence from a foreign
// file could imitate our own output. A Python layer's param_str may have several lines; options of
// plug-ins are not checked.
void CheckTexts(const google::protobuf::Message& definition);

}  // namespace caffe
