// Conditions that must hold for a net with any geometry.
#pragma once

#include <string>

#include "caffe/proto/caffe.pb.h"

namespace caffe::fuzz {

struct GeometryReport {
  std::string finding;  // empty: all conditions hold
  std::string refusal;  // the library's user error
  bool was_run = false;
};

// The net must be refused by a one-line error that names the layer, or be planned in bounded time
// and memory. If it is small, it is run forward and backward: float kernels, which the plan chooses
// by the geometry, must compute the same as the plain ones in double, with all blobs kept and with
// memory reused. With `plants_error` one number of the float runs is changed.
GeometryReport CheckGeometry(const NetParameter& net, bool plants_error = false);

}  // namespace caffe::fuzz
