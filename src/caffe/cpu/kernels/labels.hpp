// Access to labels in loss kernels.
#pragma once

#include <cstdint>

#include "caffe/cpu/kernels/element.hpp"
#include "caffe/error.hpp"
#include "caffe/ops/loss.hpp"
#include "caffe/tensor/tensor_view.hpp"

namespace caffe::cpu {

using ops::ClassView;
using ops::IsIgnored;

inline int64_t LabelAt(const TensorView& labels, int64_t position) {
  return static_cast<int64_t>(ElementOf(labels, position));
}

inline void RequireLabel(int64_t label, int64_t classes, int64_t position) {
  Require(0 <= label && label < classes, "label ", label, " at position ", position,
          " of the batch is outside 0..", classes - 1,
          "; check num_output and the labels, or set ignore_label");
}

}  // namespace caffe::cpu
