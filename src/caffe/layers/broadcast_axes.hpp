// The axes of a bottom that a smaller operand covers: shared by Scale and Bias.
#pragma once

#include "caffe/error.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/shape.hpp"

namespace caffe {

// A learned operand covers `num_axes` axes from `axis` on (-1: to the end, 0: a scalar).
inline ops::BroadcastAxes LearnedAxes(const Shape& bottom, int axis, int num_axes) {
  Require(num_axes >= -1, "num_axes is ", num_axes, "; use -1 or more");
  const int first = num_axes == 0 ? 0 : bottom.CanonicalAxis(axis);
  const int count = num_axes == -1 ? bottom.num_axes() - first : num_axes;
  Require(count <= bottom.num_axes() - first, "axis ", axis, " + num_axes ", num_axes,
          " goes beyond the ", bottom.num_axes(), " axes of shape ", bottom);
  return {.axis = first, .num_axes = count};
}

// A second bottom covers as many axes as it has.
inline ops::BroadcastAxes BottomAxes(const Shape& bottom, int axis, const Shape& operand) {
  const int first = operand.num_axes() == 0 ? 0 : bottom.CanonicalAxis(axis);
  Require(first + operand.num_axes() <= bottom.num_axes(), "bottom 1 of shape ", operand,
          " goes beyond the axes of shape ", bottom, " from axis ", first, " on");
  for (int i = 0; i < operand.num_axes(); ++i) {
    Require(bottom[first + i] == operand[i], "bottom 1 of shape ", operand, " does not match axis ",
            first + i, " of shape ", bottom, " (", operand[i], " against ", bottom[first + i], ")");
  }
  return {.axis = first, .num_axes = operand.num_axes()};
}

inline Shape CoveredShape(const Shape& bottom, const ops::BroadcastAxes& axes) {
  return Shape(std::vector<int64_t>(bottom.dims().begin() + axes.axis,
                                    bottom.dims().begin() + axes.axis + axes.num_axes));
}

}  // namespace caffe
