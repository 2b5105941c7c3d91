// Compares the gradients of backward with central differences of forward.
//
//     caffe::Net net("net.prototxt", caffe::TRAIN);  // keep-all, with force_backward
//     for (const caffe::GradientDifference& one : caffe::CheckGradients(net, {"x"}))
//       std::printf("%s: off by %g\n", one.variable.c_str(), one.error);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/net.hpp"

namespace caffe {

struct GradientCheckOptions {
  // Amount by which a value is raised and lowered. 0: 1e-5 in a net of doubles, otherwise 1e-2.
  double step = 0;
  // Largest error that passes. 0: 1e-6 in a net of doubles, otherwise 1e-2.
  double tolerance = 0;
};

// Error of a variable's gradient, at the element with the largest error.
struct GradientDifference {
  std::string variable;  // a blob, or a parameter as in LearnableParam::name: "conv1.0"
  int64_t count = 0;
  int64_t element = 0;  // in the blob's plain order
  double gradient = 0;  // computed by Backward
  double estimate = 0;  // (f(x + step) - f(x - step)) / (2 step)
  // |gradient - estimate| divided by the largest gradient or estimate of the variable, but by at
  // least 1e-3 in a net of doubles and 1e-2 otherwise.
  double error = 0;
  bool passes = false;
};

// Checks the function: sum of the net's outputs, with losses scaled by their weights and other
// outputs by random factors from [-1, 1). Random layers draw the same numbers in each pass.
// `inputs` are blobs whose gradients are checked in addition to those of all learnable parameters;
// the caller sets their values, which are restored afterwards, as the parameters are. Throws
// InvalidArgument for an unknown blob and for a net that is not keep-all.
CAFFE_EXPORT std::vector<GradientDifference> CheckGradients(
    Net& net, const std::vector<std::string>& inputs, const GradientCheckOptions& options = {});

}  // namespace caffe
