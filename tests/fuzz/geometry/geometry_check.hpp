// What has to hold of a net, whatever geometry it asks for.
#pragma once

#include <string>

#include "caffe/proto/caffe.pb.h"

namespace caffe::fuzz {

struct GeometryReport {
  std::string finding;  // empty: all is well
  std::string refusal;  // the user's error that the library answered with
  bool was_run = false;
};

// The net is refused by an error that names the layer, in one line, or planned in bounded time and
// memory. Where it is small, it is run forward and backward: kernels for float, which the plan
// chooses by the geometry, compute what the plain ones compute in double, with all blobs kept and
// with memory reused. With `plants_error` one number of the float runs is changed.
GeometryReport CheckGeometry(const NetParameter& net, bool plants_error = false);

}  // namespace caffe::fuzz
