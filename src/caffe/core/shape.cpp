#include "caffe/shape.hpp"

#include <algorithm>
#include <limits>

#include "caffe/error.hpp"

namespace caffe {

Shape::Shape(std::vector<int64_t> dims) : dims_(std::move(dims)) {
  Require(num_axes() <= kMaxAxes, "a shape has at most ", kMaxAxes, " axes, got ", num_axes());
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  for (const int64_t extent : dims_) {
    Require(extent >= 0, "shape ", *this, " has a negative extent (", extent, ")");
    Require(extent <= kMost, "shape ", *this, " has an extent of ", extent, "; it may be at most ",
            kMost);
  }
  // Products of some extents (count(1), say) must not overflow even if the shape is empty.
  const bool is_empty = std::ranges::count(dims_, 0) > 0;
  const int64_t most = is_empty ? std::numeric_limits<int64_t>::max() : kMost;
  int64_t total = 1;
  for (const int64_t extent : dims_) {
    if (extent == 0) continue;
    Require(total <= most / extent, "shape ", *this, " has more than ", most, " elements",
            is_empty ? " in addition to its empty axes" : "",
            "; lower the batch size or another extent");
    total *= extent;
  }
}

int64_t Shape::count(int from, int to) const {
  CAFFE_ASSERT(0 <= from && from <= to && to <= num_axes(), "range ", from, "..", to, " of ",
               *this);
  int64_t total = 1;
  for (int axis = from; axis < to; ++axis) total *= dims_[axis];
  return total;
}

int Shape::CanonicalAxis(int axis) const {
  Require(-num_axes() <= axis && axis < num_axes(), "axis ", axis, " is out of range for shape ",
          *this, ", which has ", num_axes(), " axes");
  return axis < 0 ? axis + num_axes() : axis;
}

Shape Shape::With(int axis, int64_t extent) const {
  std::vector<int64_t> dims = dims_;
  dims[CanonicalAxis(axis)] = extent;
  return Shape(std::move(dims));
}

std::string Shape::ToString() const {
  if (dims_.empty()) return "scalar";
  std::string text;
  for (const int64_t extent : dims_) {
    if (!text.empty()) text += 'x';
    text += std::to_string(extent);
  }
  return text;
}

}  // namespace caffe
