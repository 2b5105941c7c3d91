// Rounds numbers to those of another type.
#pragma once

#include <string>

#include "caffe/dtype.hpp"
#include "caffe/ops/pointwise.hpp"

namespace caffe::ops {

// (x) -> (y):  y = the number of type `type` that is nearest to x, in the op's own type.
struct RoundTo : UnaryPointwise {
  static constexpr std::string_view kName = "RoundTo";
  DType type = DType::kFloat;

  explicit RoundTo(DType type = DType::kFloat) : type(type) {}
  std::string Attributes() const { return StrCat("to ", Name(type)); }
  template <typename A>
  CAFFE_HOST_DEVICE inline A Apply(A x) const {
    const auto narrow = static_cast<float>(x);
    switch (type) {
      case DType::kFloat:
        return narrow;
      case DType::kFloat16:
        return static_cast<float>(float16(narrow));
      case DType::kBFloat16:
        return static_cast<float>(bfloat16(narrow));
      default:
        return x;
    }
  }
};

}  // namespace caffe::ops
