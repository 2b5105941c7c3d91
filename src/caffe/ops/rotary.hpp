// Rotary position embedding (Su et al. 2021).
#pragma once

#include <string>

#include "caffe/host_device.hpp"
#include "caffe/ops/op.hpp"

namespace caffe::ops {

// (x) -> (y). x has a row for each position of each item: `heads` heads of `width` numbers, which
// are turned, and `others` numbers after them, which are not. Elements i and i + width / 2 of a
// head are turned as the coordinates of a point, by the angle position * base^(-2 i / width), or
// back if `inverse`, which is the gradient. width is even.
struct Rotary {
  static constexpr std::string_view kName = "Rotary";
  static constexpr bool kInPlace = true;
  int64_t positions = 0, heads = 0, width = 0, others = 0;
  double base = 10000;
  bool inverse = false;

  CAFFE_HOST_DEVICE int64_t step() const { return heads * width + others; }
  std::string Attributes() const {
    return StrCat(heads, " heads of ", width, ", base ", base, inverse ? ", inverse" : "");
  }
};

}  // namespace caffe::ops
