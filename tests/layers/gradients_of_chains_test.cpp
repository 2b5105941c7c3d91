// Gradients of layers in a chain.
#include "tests/layers/gradient_cases.hpp"

namespace caffe {
namespace {

void ChainsGradients(GradientCaseList& add) {
  // An in-place layer, and a chain that a training plan would fuse.
  add({"InPlaceChain", "2x3x4x4",
       StrCat("layer { name: 'c' type: 'Convolution' bottom: 'x0' top: 'y' convolution_param { "
              "num_output: 3 "
              "kernel_size: 3 pad: 1 ",
              kGaussian,
              "} } "
              "layer { name: 'n' type: 'BatchNorm' bottom: 'y' top: 'y' batch_norm_param { eps: "
              "0.01 } } "
              "layer { name: 's' type: 'Scale' bottom: 'y' top: 'y' scale_param { bias_term: true ",
              kFiller,
              "} } "
              "layer { name: 't' type: 'TanH' bottom: 'y' top: 'y' }")})
      .tolerance = 1e-5;
}

const GradientCases chains_gradients("chains", ChainsGradients);

}  // namespace
}  // namespace caffe
