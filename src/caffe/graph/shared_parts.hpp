// Which operands of a node may lie in one memory because they hold the same elements.
#pragma once

#include <cstdint>
#include <vector>

#include "caffe/graph/graph.hpp"

namespace caffe {

// `part` has the bytes of `whole` from `offset` on.
struct SharedPart {
  const Value* part = nullptr;
  const Value* whole = nullptr;
  int64_t offset = 0;
};

// A view is its input as a whole, and a convolution into some channels leaves the others as they
// are. A concatenation consists of its inputs, and a slice is part of its input, where
// concat-in-place has marked them.
std::vector<SharedPart> SharedParts(const Node& node);

}  // namespace caffe
