// Clips boxes to a window of their image.
#pragma once

#include <vector>

#include "caffe/data/transformers/object_box.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::data {

// The part of `box` inside `window`, relative to the window's sides. Both must use the same
// coordinates.
ObjectBox ClipTo(const ObjectBox& window, const ObjectBox& box);

// Area of the intersection.
float OverlapOf(const ObjectBox& a, const ObjectBox& b);

// Returns the clipped boxes that satisfy emit_constraint (if set) and whose remaining area is not
// 0.
std::vector<ObjectBox> BoxesInWindow(const TransformationParameter& param, const ObjectBox& window,
                                     const std::vector<ObjectBox>& boxes);

}  // namespace caffe::data
