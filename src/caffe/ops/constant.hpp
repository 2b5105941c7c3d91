// Values that are known when the net is built.
#pragma once

#include <memory>
#include <vector>

#include "caffe/ops/op.hpp"

namespace caffe::ops {

// () -> (y):  the elements of `values`; y has as many.
struct Constant {
  static constexpr std::string_view kName = "Constant";
  std::shared_ptr<const std::vector<float>> values;
};

}  // namespace caffe::ops
