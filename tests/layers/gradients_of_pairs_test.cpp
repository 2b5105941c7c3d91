// Gradients of layers that compare or move images.
#include "tests/layers/gradient_cases.hpp"

namespace caffe {
namespace {

void PairsGradients(GradientCaseList& add) {
  const auto pair = [&](const std::string& name, const std::string& type, const std::string& inputs,
                        const std::string& options) {
    add({name, inputs,
         StrCat("layer { name: 'l' type: '", type, "' bottom: 'x0' bottom: 'x1' top: 'y' ", options,
                " }")});
  };
  pair("FlowWarp", "FlowWarp", "2x2x4x5 2x2x4x5", "");
  pair("SpatialTransformer", "SpatialTransformer", "2x2x4x5 2x6",
       "st_param { output_H: 3 output_W: 6 }");
  pair("SpatialTransformerFixed", "SpatialTransformer", "2x2x4x5 2x2x1x1",
       "st_param { theta_1_1: 0.9 theta_1_3: 0.05 theta_2_1: -0.2 theta_2_2: 0.8 }");
  pair("Correlation", "Correlation", "2x2x4x5 2x2x4x5",
       "correlation_param { pad: 2 kernel_size: 1 max_displacement: 2 stride_2: 2 }");
  pair("CorrelationSubtract", "Correlation", "1x2x5x4 1x2x5x4",
       "correlation_param { pad: 3 kernel_size: 3 max_displacement: 2 stride_1: 2 "
       "correlation_type: SUBTRACT }");
  pair("CorrelationAbsolute", "Correlation", "2x2x4x5 2x2x4x5",
       "correlation_param { pad: 1 kernel_size: 3 max_displacement: 1 do_abs: true }");
  pair("Correlation1D", "Correlation1D", "1x2x4x6 1x2x4x6",
       "correlation_param { pad: 3 kernel_size: 1 max_displacement: 3 single_direction: -1 }");
}

const GradientCases pairs_gradients("pairs", PairsGradients);

}  // namespace
}  // namespace caffe
