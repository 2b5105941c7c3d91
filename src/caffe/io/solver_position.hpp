// Finds the position of a field in a solver's file, for errors that occur after parsing.
#pragma once

#include <string>
#include <utility>

#include "caffe/export.hpp"
#include "caffe/io/with_position.hpp"

namespace caffe {

// Returns "FILE:LINE:COLUMN" of the first field that `message` ("solver: ...") names and the file
// sets; "FILE" if it sets none of them. Empty for other messages, and for a file that is not
// regular. Reads the file again.
CAFFE_EXPORT ErrorPlace PositionOfSolverField(const std::string& file, const std::string& message);

// Runs `build`; prepends the position to an Error that begins with "solver: ".
template <typename Build>
decltype(auto) WithSolverPosition(const std::string& file, Build&& build) {
  return WithPosition(
      [&](const std::string& message) { return PositionOfSolverField(file, message); },
      std::forward<Build>(build));
}

}  // namespace caffe
