// Where a solver's file sets a field, for errors that are found after it was parsed.
#pragma once

#include <string>
#include <utility>

#include "caffe/export.hpp"
#include "caffe/io/with_position.hpp"

namespace caffe {

// "FILE:LINE:COLUMN" of the first field that `message` ("solver: ...") names and the file sets;
// "FILE" where it sets none of those that are named. Empty for other messages, and for what is no
// regular file. Reads the file once more.
CAFFE_EXPORT std::string PositionOfSolverField(const std::string& file, const std::string& message);

// Runs `build`; an Error leaving it that begins with "solver: " gets the position in front.
template <typename Build>
decltype(auto) WithSolverPosition(const std::string& file, Build&& build) {
  return WithPosition(
      [&](const std::string& message) { return PositionOfSolverField(file, message); },
      std::forward<Build>(build));
}

}  // namespace caffe
