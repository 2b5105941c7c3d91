#include "caffe/data/transformers/boxes_in_window.hpp"

#include <algorithm>

namespace caffe::data {
namespace {

bool MeetsConstraint(const EmitConstraint& constraint, const ObjectBox& window,
                     const ObjectBox& box) {
  if (constraint.emit_type() == EmitConstraint::MIN_OVERLAP) {
    return box.area() > 0 && OverlapOf(window, box) / box.area() > constraint.emit_overlap();
  }
  const float x = (box.xmin + box.xmax) / 2, y = (box.ymin + box.ymax) / 2;
  return window.xmin <= x && x <= window.xmax && window.ymin <= y && y <= window.ymax;
}

}  // namespace

ObjectBox ClipTo(const ObjectBox& window, const ObjectBox& box) {
  ObjectBox clipped = box;
  const auto part = [](float at, float low, float size) {
    return std::clamp((at - low) / size, 0.0f, 1.0f);
  };
  clipped.xmin = part(box.xmin, window.xmin, window.width());
  clipped.xmax = part(box.xmax, window.xmin, window.width());
  clipped.ymin = part(box.ymin, window.ymin, window.height());
  clipped.ymax = part(box.ymax, window.ymin, window.height());
  return clipped;
}

float OverlapOf(const ObjectBox& a, const ObjectBox& b) {
  const float width = std::min(a.xmax, b.xmax) - std::max(a.xmin, b.xmin);
  const float height = std::min(a.ymax, b.ymax) - std::max(a.ymin, b.ymin);
  return width <= 0 || height <= 0 ? 0 : width * height;
}

std::vector<ObjectBox> BoxesInWindow(const TransformationParameter& param, const ObjectBox& window,
                                     const std::vector<ObjectBox>& boxes) {
  std::vector<ObjectBox> kept;
  for (const ObjectBox& box : boxes) {
    if (param.has_emit_constraint() && !MeetsConstraint(param.emit_constraint(), window, box)) {
      continue;
    }
    const ObjectBox clipped = ClipTo(window, box);
    if (clipped.area() > 0) kept.push_back(clipped);
  }
  return kept;
}

}  // namespace caffe::data
