// Gradients by backward, compared with central differences of forward.
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
  // By how much a value is moved up and down. 0: 1e-5 in a net of doubles, else 1e-2.
  double step = 0;
  // Largest error that passes. 0: 1e-6 in a net of doubles, else 1e-2.
  double tolerance = 0;
};

// How far a variable's gradient is off, at the element where it is most.
struct GradientDifference {
  std::string variable;  // a blob, or a parameter as in LearnableParam::name: "conv1.0"
  int64_t count = 0;
  int64_t element = 0;  // in the blob's plain order
  double gradient = 0;  // by Backward
  double estimate = 0;  // (f(x + step) - f(x - step)) / (2 step)
  // |gradient - estimate| / the largest of both of the variable, which counts as at least 1e-3 in a
  // net of doubles, else 1e-2.
  double error = 0;
  bool passes = false;
};

// Of the function: the sum of the net's outputs, losses with their weights, others with random
// factors from [-1, 1). Random layers draw the same numbers in each pass. `inputs` are blobs whose
// gradients are checked beside those of all parameters that learn; their values are the caller's,
// and are there again afterwards, as the parameters' are. Throws InvalidArgument for an unknown
// blob and for a net that is not keep-all.
CAFFE_EXPORT std::vector<GradientDifference> CheckGradients(
    Net& net, const std::vector<std::string>& inputs, const GradientCheckOptions& options = {});

}  // namespace caffe
