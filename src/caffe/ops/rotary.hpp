// Rotary position embedding (Su et al. 2021).
#pragma once

#include <string>

#include "caffe/host_device.hpp"
#include "caffe/ops/op.hpp"

namespace caffe::ops {

// (x, start, cont) -> (y, next). x has a row for each position of each item: `heads` heads of
// `width` numbers, which are turned, and `others` numbers after them, which are not. Elements i and
// i + width / 2 of a head are turned as the coordinates of a point, by the angle position *
// base^(-2 i / width), or back if `inverse`, which is the gradient. width is even.
//
// The first position of an item is its number of start, or 0 where its number of cont is 0; without
// start it is 0, and without cont no number is. next is the position after the item's last one, and
// may be the same state as start.
struct Rotary {
  static constexpr std::string_view kName = "Rotary";
  static constexpr bool kInPlace = true;
  enum Input { kX, kStart, kCont };
  enum Output { kY, kNext };
  static constexpr OperandSet kExactInputs = {kStart, kCont};
  int64_t positions = 0, heads = 0, width = 0, others = 0;
  double base = 10000;
  bool inverse = false;

  CAFFE_HOST_DEVICE int64_t step() const { return heads * width + others; }
  std::string Attributes() const {
    return StrCat(heads, " heads of ", width, ", base ", base, inverse ? ", inverse" : "");
  }
};

}  // namespace caffe::ops
