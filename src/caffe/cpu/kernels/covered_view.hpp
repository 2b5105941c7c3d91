// How broadcast kernels see a tensor and the smaller operand beside it.
#pragma once

#include <algorithm>

#include "caffe/ops/broadcast.hpp"
#include "caffe/tensor/tensor_view.hpp"

namespace caffe::cpu {

// A tensor in memory order as outer x covered x inner, covered being what the smaller operand has.
struct CoveredView {
  int64_t outer = 1, covered = 1, inner = 1;

  CoveredView(const TensorView& x, const ops::BroadcastAxes& axes) {
    if (x.layout == Layout::kChannelsLast) {
      covered = x.shape[1];
      outer = x.count() / std::max<int64_t>(covered, 1);
      return;
    }
    outer = x.shape.count(0, axes.axis);
    covered = x.shape.count(axes.axis, axes.axis + axes.num_axes);
    inner = x.shape.count(axes.axis + axes.num_axes);
  }
};

// Element i of a tensor of any type.
inline double ElementOf(const TensorView& view, int64_t i) {
  return VisitFloat(view.dtype, [&]<typename T>(TypeTag<T>) {
    return static_cast<double>(view.as<const T>()[i]);
  });
}

}  // namespace caffe::cpu
