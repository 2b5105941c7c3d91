// Finds operands of a node that may share memory because they hold the same elements.
#pragma once

#include <cstdint>
#include <vector>

#include "caffe/graph/graph.hpp"

namespace caffe {

// `part` has the same bytes as `whole` from `offset` on.
struct SharedPart {
  const Value* part = nullptr;
  const Value* whole = nullptr;
  int64_t offset = 0;
};

// A view shares its whole input, and a convolution into some channels leaves the others unchanged.
// If concat-in-place has marked them, a concatenation consists of its inputs and a slice is part of
// its input.
std::vector<SharedPart> SharedParts(const Node& node);

}  // namespace caffe
