// Shape of a blob: up to 32 axes of non-negative extents, outermost first.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <string>
#include <vector>

#include "caffe/export.hpp"

namespace caffe {

inline constexpr int kMaxAxes = 32;

class CAFFE_EXPORT Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(std::vector<int64_t>(dims)) {}
  // Throws InvalidArgument for a negative extent, more than kMaxAxes axes, or more than 2^31 - 1
  // elements (the limit of Caffe's file formats and of many kernels).
  explicit Shape(std::vector<int64_t> dims);

  int num_axes() const { return static_cast<int>(dims_.size()); }
  // Extent of `axis`; negative counts from the end. Throws when out of range.
  int64_t operator[](int axis) const { return dims_[CanonicalAxis(axis)]; }
  const std::vector<int64_t>& dims() const { return dims_; }

  // Number of elements; 1 for a shape without axes.
  int64_t count() const { return count(0, num_axes()); }
  int64_t count(int from) const { return count(from, num_axes()); }
  // Product of the extents of axes [from, to).
  int64_t count(int from, int to) const;

  // Maps -1 to the last axis and so on. Throws InvalidArgument naming axis and shape.
  int CanonicalAxis(int axis) const;

  // Extent of `axis`, or 1 if the shape has fewer axes: Caffe's legacy N,C,H,W view.
  int64_t LegacyExtent(int axis) const { return axis < num_axes() ? dims_[axis] : 1; }

  // Copy of the shape with one extent replaced.
  Shape With(int axis, int64_t extent) const;

  // "64x3x224x224"; "scalar" for no axes.
  std::string ToString() const;

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::vector<int64_t> dims_;
};

inline std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << shape.ToString();
}

}  // namespace caffe
