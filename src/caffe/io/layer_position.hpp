// Where a file defines a layer, for errors that are found after it was parsed.
#pragma once

#include <string>
#include <utility>

#include "caffe/export.hpp"
#include "caffe/io/with_position.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// "FILE:LINE:COLUMN" of the layer that `message` begins with ("layer 'conv1'..."); of several that
// have its name, the first that `phase` may have. Empty where the message or the file has none, and
// for what is no regular file. Reads the file once more, so that nothing has to be kept for errors
// that do not happen.
CAFFE_EXPORT std::string PositionOfLayer(const std::string& file, Phase phase,
                                         const std::string& message);

// Runs `build`; an Error leaving it that begins with a layer gets the layer's position in front.
// Nothing is added where `file` is empty.
template <typename Build>
decltype(auto) WithLayerPosition(const std::string& file, Phase phase, Build&& build) {
  return WithPosition(
      [&](const std::string& message) { return PositionOfLayer(file, phase, message); },
      std::forward<Build>(build));
}

}  // namespace caffe
