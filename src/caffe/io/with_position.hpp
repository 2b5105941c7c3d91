// Adds the position in a definition to an error that occurred after parsing.
#pragma once

#include <string>
#include <utility>

#include "caffe/error.hpp"
#include "caffe/export.hpp"

namespace caffe {

struct ErrorPlace {
  std::string place;  // "FILE:LINE:COLUMN"; empty if unknown
  std::string chain;  // "; used at FILE:LINE:COLUMN" for what a block made, else empty
};

// Throws the exception that is being handled with `place` before its text and the chain after it.
// The type of an Error is kept; other exceptions are thrown unchanged. Must be called in a handler.
[[noreturn]] CAFFE_EXPORT void RethrowAt(const ErrorPlace& place);

// Runs `build`; adds the result of `place_of(message)` to an Error, unless it is empty, and keeps
// the error's type.
template <typename PlaceOf, typename Build>
decltype(auto) WithPosition(PlaceOf&& place_of, Build&& build) {
  try {
    return std::forward<Build>(build)();
  } catch (const Error& error) {
    const ErrorPlace place = place_of(std::string(error.what()));
    if (place.place.empty()) throw;
    RethrowAt(place);
  }
}

}  // namespace caffe
