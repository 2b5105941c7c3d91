// Ops that pick elements along an axis by indices, or put them there. Data are outer x extent x
// inner around the axis. An index counts from 0, a negative one from the end. CPU kernels throw
// InvalidArgument for one that names no place; other devices, whose kernels cannot throw, give NaN.
#pragma once

#include <cmath>
#include <string>

#include "caffe/ops/each_element.hpp"

namespace caffe::ops {

// The place that an index names among `extent`; -1 if it names none.
CAFFE_HOST_DEVICE inline int64_t PlaceOf(double index, int64_t extent) {
  const double place = index < 0 ? index + static_cast<double>(extent) : index;
  const bool is_place =
      place >= 0 && place < static_cast<double>(extent) && place == std::floor(place);
  return is_place ? static_cast<int64_t>(place) : -1;
}

// The elements of a row: `count` indices name places among `extent`. Neighbours along the axis are
// `inner` elements apart.
struct PickedAxis {
  int64_t extent = 1, count = 1, inner = 1;

  // Element `k` along the axis of the row that element i belongs to, in a tensor whose axis has
  // `from` elements, as an element of one whose axis has `to`.
  CAFFE_HOST_DEVICE inline int64_t At(int64_t i, int64_t from, int64_t to, int64_t k) const {
    const auto whole = static_cast<uint32_t>(i), step = static_cast<uint32_t>(inner);
    const uint32_t outer = whole / (static_cast<uint32_t>(from) * step);
    return (outer * to + k) * inner + whole % step;
  }
  // Where element i is along an axis of `extent` elements.
  CAFFE_HOST_DEVICE inline int64_t Along(int64_t i, int64_t axis_extent) const {
    return static_cast<uint32_t>(i) / static_cast<uint32_t>(inner) %
           static_cast<uint32_t>(axis_extent);
  }
};

// (x, index) -> (y):  y[o, k, i] = x[o, index[k], i]; index has `count` elements.
struct Take {
  static constexpr std::string_view kName = "Take";
  static constexpr int kInputs = 2;
  static constexpr OperandSet kExactInputs = {1};
  PickedAxis axis;

  std::string Attributes() const { return StrCat(axis.count, " of ", axis.extent); }
  template <typename A, typename X, typename Index>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const X& x, const Index& index) const {
    const int64_t place = PlaceOf(index[axis.Along(i, axis.count)], axis.extent);
    return place < 0 ? A(NAN) : x[axis.At(i, axis.count, axis.extent, place)];
  }
};

// (dy, index) -> (dx):  dx[o, index[k], i] += dy[o, k, i], in the order of k.
struct TakeGrad {
  static constexpr std::string_view kName = "TakeGrad";
  static constexpr int kInputs = 2;
  static constexpr OperandSet kExactInputs = {1};
  PickedAxis axis;

  template <typename A, typename Dy, typename Index>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const Dy& dy, const Index& index) const {
    const int64_t place = axis.Along(i, axis.extent);
    A sum = 0;
    for (int64_t k = 0; k < axis.count; ++k) {
      if (PlaceOf(index[k], axis.extent) != place) continue;
      sum += dy[axis.At(i, axis.extent, axis.count, k)];
    }
    return sum;
  }
};

// (x, index) -> (y):  y[o, k, i] = x[o, index[o, k, i], i]. With `last_only`, 0 if a later element
// of the row has the same index.
struct TakeElements {
  static constexpr std::string_view kName = "TakeElements";
  static constexpr int kInputs = 2;
  static constexpr OperandSet kExactInputs = {1};
  PickedAxis axis;
  bool last_only = false;

  template <typename A, typename X, typename Index>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const X& x, const Index& index) const {
    const int64_t place = PlaceOf(index[i], axis.extent);
    if (place < 0) return A(NAN);
    for (int64_t k = axis.Along(i, axis.count) + 1; last_only && k < axis.count; ++k) {
      if (PlaceOf(index[axis.At(i, axis.count, axis.count, k)], axis.extent) == place) return A(0);
    }
    return x[axis.At(i, axis.count, axis.extent, place)];
  }
};

// (updates, index[, x]) -> (y):  y = x, or 0 without x, except that y[o, index[o, k, i], i] is
// updates[o, k, i], of several the last one; with `adds` they are added to x instead.
struct PutElements {
  static constexpr std::string_view kName = "PutElements";
  static constexpr int kInputs = 3;
  static constexpr OperandSet kExactInputs = {1};
  PickedAxis axis;
  bool adds = false;

  std::string Attributes() const {
    return StrCat(axis.count, adds ? " added to " : " into ", axis.extent);
  }
  template <typename A, typename U, typename Index, typename X>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const U& updates, const Index& index,
                                     const X& x) const {
    const int64_t place = axis.Along(i, axis.extent);
    A value = x.is_present() ? x[i] : A(0);
    for (int64_t k = 0; k < axis.count; ++k) {
      const int64_t at = axis.At(i, axis.extent, axis.count, k);
      const int64_t named = PlaceOf(index[at], axis.extent);
      if (named < 0) return A(NAN);
      if (named == place) value = updates[at] + (adds ? value : A(0));
    }
    return value;
  }
};

// (dy, index) -> (dx):  dy, but 0 at the places that an index of its row names.
struct ClearElements {
  static constexpr std::string_view kName = "ClearElements";
  static constexpr int kInputs = 2;
  static constexpr OperandSet kExactInputs = {1};
  PickedAxis axis;

  template <typename A, typename Dy, typename Index>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const Dy& dy, const Index& index) const {
    const int64_t place = axis.Along(i, axis.extent);
    for (int64_t k = 0; k < axis.count; ++k) {
      const int64_t at = axis.At(i, axis.extent, axis.count, k);
      if (PlaceOf(index[at], axis.extent) == place) return A(0);
    }
    return dy[i];
  }
};

// (x) -> (values, indices):  the `count` largest elements of each row, or the smallest, and their
// places, the most extreme first. NaN counts as larger than all numbers; of equal elements the one
// with the lowest index comes first.
struct TopK {
  static constexpr std::string_view kName = "TopK";
  PickedAxis axis;
  bool largest = true;

  std::string Attributes() const {
    return StrCat(largest ? "largest " : "smallest ", axis.count, " of ", axis.extent);
  }
};

}  // namespace caffe::ops
