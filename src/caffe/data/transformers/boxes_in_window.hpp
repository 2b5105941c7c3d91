// Boxes seen from a window of their image.
#pragma once

#include <vector>

#include "caffe/data/transformers/object_box.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::data {

// The part of `box` inside `window`, in parts of the window's sides. Both in the same frame.
ObjectBox ClipTo(const ObjectBox& window, const ObjectBox& box);

// Area of the intersection.
float OverlapOf(const ObjectBox& a, const ObjectBox& b);

// What of the boxes is in the window: those that meet emit_constraint (if given) and have some area
// left, clipped.
std::vector<ObjectBox> BoxesInWindow(const TransformationParameter& param, const ObjectBox& window,
                                     const std::vector<ObjectBox>& boxes);

}  // namespace caffe::data
