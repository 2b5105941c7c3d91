// How loss kernels read labels.
#pragma once

#include <cstdint>
#include <optional>

#include "caffe/error.hpp"
#include "caffe/tensor/tensor_view.hpp"

namespace caffe::cpu {

// A tensor seen as outer x classes x inner around the class axis.
struct ClassView {
  int64_t outer, classes, inner;
  ClassView(const Shape& shape, int axis)
      : outer(shape.count(0, axis)), classes(shape[axis]), inner(shape.count(axis + 1)) {}

  int64_t positions() const { return outer * inner; }
  // Index of a class's element at a position (outer and inner together).
  int64_t At(int64_t position, int64_t c) const {
    return (position / inner * classes + c) * inner + position % inner;
  }
};

// The label of a position, read from a tensor of the element type that the loss computes in.
template <typename T>
int64_t LabelAt(const TensorView& labels, int64_t position) {
  return static_cast<int64_t>(labels.as<const T>()[position]);
}

inline bool IsIgnored(const std::optional<int>& ignore_label, int64_t label) {
  return ignore_label && label == *ignore_label;
}

inline void RequireLabel(int64_t label, int64_t classes, int64_t position) {
  Require(0 <= label && label < classes, "label ", label, " at position ", position,
          " of the batch is outside 0..", classes - 1,
          "; check num_output and the labels, or set ignore_label");
}

}  // namespace caffe::cpu
