// Prepends the position in a definition to an error that occurred after parsing.
#pragma once

#include <string>
#include <utility>

#include "caffe/error.hpp"

namespace caffe {

// Runs `build`; prepends the result of `position_of(message)` to an Error, unless it is empty, and
// keeps the error's type.
template <typename PositionOf, typename Build>
decltype(auto) WithPosition(PositionOf&& position_of, Build&& build) {
  try {
    return std::forward<Build>(build)();
  } catch (const Error& error) {
    const std::string position = position_of(std::string(error.what()));
    if (position.empty()) throw;
    WithContext(position, [] { throw; });
    throw;  // with a type that WithContext preserves
  }
}

}  // namespace caffe
