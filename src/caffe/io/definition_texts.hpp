// Texts in definitions.
#pragma once

#include <google/protobuf/message.h>

namespace caffe {

// Throws InvalidArgument when a text of a net or a solver holds control characters: names, paths
// and choices stand in logs and messages, where a line break or an escape sequence of somebody
// else's file would look like our own words. A Python layer's param_str may have several lines;
// options of plug-ins are theirs.
void CheckTexts(const google::protobuf::Message& definition);

}  // namespace caffe
