// Gradients of convolutions and pooling.
#include "tests/layers/gradient_cases.hpp"

namespace caffe {
namespace {

void ConvolutionGradients(GradientCaseList& add) {
  const auto conv = [&](const std::string& name, const std::string& shape,
                        const std::string& options) {
    add(Layer1("Convolution" + name, shape, "Convolution",
               StrCat("convolution_param { ", kGaussian, options, " }")));
  };
  conv("", "2x3x5x4", "num_output: 4 kernel_size: 3 pad: 1");
  conv("1x1", "2x3x3x3", "num_output: 4 kernel_size: 1");
  conv("Stride", "2x2x6x5",
       "num_output: 3 kernel_h: 3 kernel_w: 2 stride_h: 2 stride_w: 1 pad_h: 1");
  conv("Group", "2x4x4x4", "num_output: 6 kernel_size: 3 group: 2");
  conv("Dilation", "1x2x7x7", "num_output: 2 kernel_size: 3 dilation: 2 pad: 1");
  conv("NoBias", "1x2x4x4", "num_output: 2 kernel_size: 2 bias_term: false");
  conv("1D", "2x3x8", "num_output: 2 kernel_size: 3 stride: 2");
  conv("3D", "1x2x4x3x4", "num_output: 2 kernel_size: 2");
  const auto pool = [&](const std::string& name, const std::string& options) {
    add(Layer1("Pooling" + name, "2x3x6x5", "Pooling", "pooling_param { " + options + " }"))
        .is_distinct = true;
  };
  pool("Max", "pool: MAX kernel_size: 2 stride: 2");
  pool("MaxPad", "pool: MAX kernel_size: 3 stride: 2 pad: 1");
  pool("Ave", "pool: AVE kernel_size: 3 stride: 2");
  pool("AvePad", "pool: AVE kernel_size: 3 stride: 2 pad: 1");
  const auto stochastic = [&](const std::string& name, bool is_test) {
    GradientCase& test = add(Layer1("PoolingStochastic" + name, "2x3x6x5", "Pooling",
                                    "pooling_param { pool: STOCHASTIC kernel_size: 3 stride: 2 }"));
    test.low = 0.1;
    test.is_test_phase = is_test;
  };
  stochastic("Mean", true);
  pool("AveGlobal", "pool: AVE global_pooling: true");
  const auto deconv = [&](const std::string& name, const std::string& shape,
                          const std::string& options) {
    add(Layer1("Deconvolution" + name, shape, "Deconvolution",
               StrCat("convolution_param { ", kGaussian, options, " }")));
  };
  deconv("", "2x3x4x3", "num_output: 4 kernel_size: 4 stride: 2 pad: 1");
  deconv("Group", "1x4x3x3", "num_output: 6 kernel_size: 2 group: 2 bias_term: false");
  deconv("Axis2", "1x2x2x3x3", "axis: 2 num_output: 2 kernel_size: 2");
  add(Layer1("DepthwiseConvolution", "2x3x4x4", "DepthwiseConvolution",
             StrCat("convolution_param { ", kGaussian, "num_output: 3 kernel_size: 3 group: 3 }")));
  add(Layer1("ConvolutionDepthwise", "2x3x4x4", "ConvolutionDepthwise",
             StrCat("convolution_param { ", kGaussian, "num_output: 3 kernel_size: 3 }")));
  add(Layer1("Im2col", "2x2x5x4", "Im2col",
             "convolution_param { kernel_size: 3 stride: 2 pad: 1 }"));
  add(Layer1("SPP", "2x2x7x6", "SPP", "spp_param { pyramid_height: 2 }")).is_distinct = true;
  add(Layer1("SPPAverage", "2x2x7x6", "SPP", "spp_param { pyramid_height: 3 pool: AVE }"));
  add(Layer1("SPPOneLevel", "1x2x4x4", "SPP", "spp_param { pyramid_height: 1 pool: AVE }"));
}

const GradientCases convolution_gradients("convolution", ConvolutionGradients);

}  // namespace
}  // namespace caffe
