// Ops that draw random numbers from the pass's counter-based stream.
#pragma once

#include <string>

#include "caffe/ops/op.hpp"

namespace caffe::ops {

// (x) -> (y):  y = x * keep * factor(), keep ~ Bernoulli(1 - ratio) (Srivastava et al. 2014).
// Linear in x with the same `keep` for one pass, so backward is the same op on dy. Element i in
// row-major order draws number i of `stream`, whatever the layout.
struct Dropout {
  static constexpr std::string_view kName = "Dropout";
  static constexpr bool kInPlace = true;
  double ratio = 0.5;
  uint64_t stream = 0;
  bool scales = true;  // scales the kept elements so that the expectation stays
  double factor() const { return scales ? 1 / (1 - ratio) : 1; }
  std::string Attributes() const { return StrCat("ratio ", ratio, scales ? "" : ", unscaled"); }
  LayoutRule layout_rule() const { return kFollowFirstInput; }
};

}  // namespace caffe::ops
