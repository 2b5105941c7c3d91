// Puts the place in a definition in front of an error that was found after the file was parsed.
#pragma once

#include <string>
#include <utility>

#include "caffe/error.hpp"

namespace caffe {

// Runs `build`; an Error leaving it gets what `position_of(message)` returns in front, unless that
// is empty, and keeps its type.
template <typename PositionOf, typename Build>
decltype(auto) WithPosition(PositionOf&& position_of, Build&& build) {
  try {
    return std::forward<Build>(build)();
  } catch (const Error& error) {
    const std::string position = position_of(std::string(error.what()));
    if (position.empty()) throw;
    WithContext(position, [] { throw; });
    throw;  // of a type that WithContext passes on
  }
}

}  // namespace caffe
