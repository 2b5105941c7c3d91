// Limit for the nesting of messages in a text.
#pragma once

namespace caffe {

// Far more than any definition has. Without a limit, protobuf recurses until the stack overflows.
inline constexpr int kMostNesting = 100;

}  // namespace caffe
