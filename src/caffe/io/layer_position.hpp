// Where a file defines a layer, for errors that are found after it was parsed.
#pragma once

#include <string>

#include "caffe/error.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// "FILE:LINE:COLUMN" of the layer that `message` begins with ("layer 'conv1'..."); of several that
// have its name, the first that `phase` may have. Empty where the message or the file has none, and
// for what is no regular file. Reads the file once more, so that nothing has to be kept for errors
// that do not happen.
std::string PositionOfLayer(const std::string& file, Phase phase, const std::string& message);

// Runs `build`; an Error leaving it that begins with a layer gets the layer's position in front.
// Nothing is added where `file` is empty.
template <typename Build>
decltype(auto) WithLayerPosition(const std::string& file, Phase phase, Build&& build) {
  try {
    return std::forward<Build>(build)();
  } catch (const Error& error) {
    const std::string position = PositionOfLayer(file, phase, error.what());
    if (position.empty()) throw;
    WithContext(position, [] { throw; });
    throw;  // of a type that WithContext passes on
  }
}

}  // namespace caffe
