// How deep messages of a text may lie within each other.
#pragma once

namespace caffe {

// Far more than any definition has. protobuf itself calls itself until the stack ends.
inline constexpr int kMostNesting = 100;

}  // namespace caffe
