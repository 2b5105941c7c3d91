// Checks the gradients of every layer with a backward, with central differences in double.
#include "caffe/gradient_check.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "caffe/blob.hpp"
#include "caffe/common.hpp"
#include "caffe/core/philox.hpp"
#include "caffe/device/device.hpp"
#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/net.hpp"
#include "tests/support/folders.hpp"

namespace caffe {
namespace {

struct GradientCase {
  std::string name;
  std::string inputs;  // "2x3x4x5 2x3" for x0, x1
  std::string layers;  // reads x0, x1, ...
  // Inputs are drawn from [low, high), at least `gap` away from 0.
  double low = -1, high = 1, gap = 0;
  std::string
      constant_inputs;  // not differentiated: labels (drawn as whole numbers below `classes`)
  int classes = 3;
  std::vector<double> constants;  // values of the first constant input instead
  bool is_distinct = false;       // inputs are a shuffle of well separated numbers
  bool is_test_phase = false;
  double tolerance = 1e-6;
  DeviceKind device = DeviceKind::kCpu;
};

void PrintTo(const GradientCase& test, std::ostream* out) {
  *out << test.name;
}

GradientCase Layer1(std::string name, std::string shape, std::string type, std::string options) {
  return {std::move(name), std::move(shape),
          "layer { name: 'l' type: '" + type + "' bottom: 'x0' top: 'y' " + options + " }"};
}

constexpr char kGaussian[] =
    "weight_filler { type: 'gaussian' std: 0.5 } bias_filler { type: 'gaussian' std: 0.5 } ";
constexpr char kFiller[] = "filler { type: 'uniform' min: 0.5 max: 1.5 } ";

std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::vector<GradientCase> Cases() {
  std::vector<GradientCase> cases;
  const auto add = [&](GradientCase test) -> GradientCase& {
    return cases.emplace_back(std::move(test));
  };
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
  const auto inner_product = [&](const std::string& name, const std::string& options) {
    add(Layer1("InnerProduct" + name, "2x3x4", "InnerProduct",
               StrCat("inner_product_param { num_output: 5 ", kGaussian, options, " }")));
  };
  inner_product("", "");
  inner_product("Transpose", "transpose: true");
  inner_product("Axis2", "axis: 2");
  inner_product("NoBias", "bias_term: false");
  add(Layer1("ReLU", "2x3x4x2", "ReLU", "")).gap = 0.1;
  add(Layer1("ReLULeaky", "2x3x4x2", "ReLU", "relu_param { negative_slope: 0.2 }")).gap = 0.1;
  add(Layer1("Sigmoid", "2x7", "Sigmoid", ""));
  add(Layer1("TanH", "2x7", "TanH", ""));
  add(Layer1("AbsVal", "2x7", "AbsVal", "")).gap = 0.1;
  add(Layer1("BNLL", "2x7", "BNLL", ""));
  add(Layer1("ELU", "2x7", "ELU", "elu_param { alpha: 0.7 lambda: 1.1 }")).gap = 0.1;
  add(Layer1("Swish", "2x7", "Swish", "swish_param { beta: 1.5 }"));
  add(Layer1("SiLU", "2x7", "SiLU", ""));
  add(Layer1("Mish", "2x7", "Mish", ""));
  add(Layer1("GELU", "2x7", "GELU", ""));
  for (const char* type : {"HardSwish", "HardSigmoid"}) {
    GradientCase& test = add(Layer1(type, "4x9", type, ""));
    test.low = -5;
    test.high = 5;
  }
  add(Layer1("ReLU6", "2x7", "ReLU6", "relu6_param { threshold: 1.005 }")).gap = 0.1;
  add(Layer1("Clip", "2x7", "Clip", "clip_param { min: -0.405 max: 0.515 }")).is_distinct = true;
  add(Layer1("Power", "2x7", "Power", "power_param { power: 3 scale: 0.5 shift: 2 }"));
  add(Layer1("PowerFraction", "2x7", "Power", "power_param { power: 0.37 shift: 2 }"));
  add(Layer1("Exp", "2x7", "Exp", "exp_param { base: 2 scale: 0.5 shift: 1 }"));
  add(Layer1("Log", "2x7", "Log", "log_param { base: 10 scale: 0.5 shift: 2 }"));
  add(Layer1("LRNAcross", "2x7x2x3", "LRN",
             "lrn_param { local_size: 5 alpha: 0.8 beta: 0.75 k: 2 }"));
  add(Layer1("LRNWithin", "2x3x5x4", "LRN",
             "lrn_param { local_size: 3 alpha: 0.8 beta: 0.75 norm_region: WITHIN_CHANNEL }"));
  add(Layer1("Dropout", "4x9", "Dropout", "dropout_param { dropout_ratio: 0.4 }"));
  add(Layer1("DropoutTest", "4x9", "Dropout", "")).is_test_phase = true;
  const std::string unscaled = "dropout_param { dropout_ratio: 0.4 scale_train: false }";
  add(Layer1("DropoutUnscaled", "4x9", "Dropout", unscaled));
  add(Layer1("DropoutUnscaledTest", "4x9", "Dropout", unscaled)).is_test_phase = true;
  add(Layer1("BatchNormTrain", "3x2x3x2", "BatchNorm", "batch_norm_param { eps: 0.01 }"))
      .tolerance = 1e-5;
  add(Layer1("BatchNorm2D", "6x3", "BatchNorm", "batch_norm_param { eps: 0.01 }")).tolerance = 1e-5;
  add(Layer1("BatchNormGlobal", "3x2x3x2", "BatchNorm",
             "batch_norm_param { use_global_stats: true eps: 0.01 }"))
      .is_test_phase = true;
  add(Layer1("BatchNormScaleBias", "3x2x3x2", "BatchNorm",
             "batch_norm_param { scale_bias: true eps: 0.01 }"))
      .tolerance = 1e-5;
  const std::string bn = "bn_param { eps: 0.01 ";
  const std::string segnet = bn + "scale_filler { value: 0.7 } shift_filler { value: 0.1 } ";
  add(Layer1("BN", "3x2x3x2", "BN", bn + "}")).tolerance = 1e-5;
  add(Layer1("BNFrozen", "3x2x3x2", "BN", bn + "frozen: true slope_filler { value: 0.7 } }"));
  add(Layer1("BNSegNet", "3x2x3x2", "BN", segnet + "}")).tolerance = 1e-5;
  add({"BNSegNetStatistics", "3x2x3x2",
       "layer { name: 'l' type: 'BN' bottom: 'x0' top: 'y' top: 'mean' top: 'variance' " + segnet +
           "} } layer { name: 's' type: 'Silence' bottom: 'mean' bottom: 'variance' }"})
      .tolerance = 1e-5;
  add(Layer1("BNSegNetInference", "3x2x3x2", "BN", segnet + "bn_mode: INFERENCE }"));
  add(Layer1("SyncBN", "3x2x3x2", "SyncBN", bn + "}")).tolerance = 1e-5;
  for (const int axis : {-1, 1}) {
    add(Layer1(StrCat("LayerNorm", axis == 1 ? "Items" : ""), "3x2x4", "LayerNorm",
               StrCat("layer_norm_param { axis: ", axis, " eps: 0.01 scale_", kFiller, "}")))
        .tolerance = 1e-5;
  }
  add(Layer1("LayerNormNotAffine", "3x5", "LayerNorm", "layer_norm_param { affine: false }"))
      .tolerance = 1e-5;
  for (const int axis : {-1, 1}) {
    add(Layer1(StrCat("RMSNorm", axis == 1 ? "Items" : ""), "3x2x4", "RMSNorm",
               StrCat("rms_norm_param { axis: ", axis, " eps: 0.01 scale_", kFiller, "}")));
  }
  add(Layer1("RMSNormNotAffine", "3x5", "RMSNorm", "rms_norm_param { affine: false }"));
  for (const std::string a : {"", "transpose_a: true "}) {
    for (const std::string b : {"", "transpose_b: true "}) {
      struct Batch {
        const char *name, *of_a, *of_b;
      };
      for (const Batch& batch : {Batch{"", "2x", "2x"},
                                 {"SameA", "", "2x"},
                                 {"SameB", "2x3x", ""},
                                 {"Groups", "2x3x", "2x1x"},
                                 {"Outer", "3x1x", "1x2x"},
                                 {"Rows", "2x1x2x", "2x3x1x"}}) {
        add({StrCat("MatMul", a.empty() ? "N" : "T", b.empty() ? "N" : "T", batch.name),
             StrCat(batch.of_a, a.empty() ? "3x4 " : "4x3 ", batch.of_b, b.empty() ? "4x5" : "5x4"),
             StrCat("layer { name: 'l' type: 'MatMul' bottom: 'x0' bottom: 'x1' top: 'y' "
                    "matmul_param { ",
                    a, b, "} }")});
      }
    }
  }
  add(Layer1("BatchReduction", "3x4x2", "BatchReduction",
             "batch_reduction_param { reduction_param { operation: MEAN coeff: 1.5 } }"));
  add(Layer1("BatchReductionLevels", "2x5x3", "BatchReduction",
             "batch_reduction_param { level: 1 level: 2 reduction_param { axis: 1 } }"));
  add(Layer1("BatchReductionDiagonal", "2x3x3x2", "BatchReduction",
             "batch_reduction_param { pos: true reduction_param { axis: 1 operation: MEAN } }"));
  add(Layer1("Scale", "2x3x2x2", "Scale", StrCat("scale_param { bias_term: true ", kFiller, "}")));
  add(Layer1("ScaleAxis0", "2x3x2", "Scale",
             StrCat("scale_param { axis: 0 num_axes: 2 ", kFiller, "}")));
  add({"ScaleTwoBottoms", "2x3x2x2 3x2",
       "layer { name: 'l' type: 'Scale' bottom: 'x0' bottom: 'x1' top: 'y' scale_param { axis: 1 } "
       "}"});
  add({"ScaleScalar", "2x3 scalar",
       "layer { name: 'l' type: 'Scale' bottom: 'x0' bottom: 'x1' top: 'y' scale_param { axis: 0 } "
       "}"});
  add(Layer1("Bias", "2x3x2x2", "Bias", StrCat("bias_param { ", kFiller, "}")));
  add({"BiasTwoBottoms", "2x3x2x2 3x2",
       "layer { name: 'l' type: 'Bias' bottom: 'x0' bottom: 'x1' top: 'y' bias_param { axis: 1 } "
       "}"});
  const auto eltwise = [&](const std::string& name, const std::string& options) -> GradientCase& {
    return add({"Eltwise" + name, "2x3x2 2x3x2 2x3x2",
                "layer { name: 'l' type: 'Eltwise' bottom: 'x0' bottom: 'x1' bottom: 'x2' top: 'y' "
                "eltwise_param { " +
                    options + " } }"});
  };
  eltwise("Sum", "operation: SUM");
  eltwise("SumCoefficients", "operation: SUM coeff: 1 coeff: -2 coeff: 0.5");
  eltwise("Prod", "operation: PROD");
  eltwise("ProdUnstable", "operation: PROD stable_prod_grad: false").gap = 0.2;
  eltwise("Max", "operation: MAX").is_distinct = true;
  add({"EltwiseSameTwice", "2x3",
       "layer { name: 'l' type: 'Eltwise' bottom: 'x0' bottom: 'x0' top: 'y' "
       "eltwise_param { operation: PROD } }"});
  add({"Concat", "2x3x2 2x1x2 2x2x2",
       "layer { name: 'l' type: 'Concat' bottom: 'x0' bottom: 'x1' bottom: 'x2' top: 'y' }"});
  add({"ConcatAxis0", "2x3 1x3",
       "layer { name: 'l' type: 'Concat' bottom: 'x0' bottom: 'x1' top: 'y' concat_param { axis: 0 "
       "} }"});
  add({"Slice", "2x6x2",
       "layer { name: 'l' type: 'Slice' bottom: 'x0' top: 'y0' top: 'y1' top: 'y2' "
       "slice_param { slice_point: 1 slice_point: 4 } }"});
  add({"Split", "2x3", "layer { name: 'l' type: 'Split' bottom: 'x0' top: 'y0' top: 'y1' }"});
  add({"SplitImplicit", "2x3",
       "layer { name: 'a' type: 'TanH' bottom: 'x0' top: 'y0' } "
       "layer { name: 'b' type: 'Sigmoid' bottom: 'x0' top: 'y1' }"});
  add(Layer1("Flatten", "2x3x2", "Flatten", ""));
  add(Layer1("Reshape", "2x3x2", "Reshape", "reshape_param { shape { dim: 0 dim: -1 } }"));
  add(Layer1("Softmax", "3x4x2", "Softmax", ""));
  add(Layer1("SoftmaxAxis0", "3x4", "Softmax", "softmax_param { axis: 0 }"));
  add({"Silence", "2x3",
       "layer { name: 'a' type: 'TanH' bottom: 'x0' top: 'y' } "
       "layer { name: 'b' type: 'Sigmoid' bottom: 'x0' top: 'unused' } "
       "layer { name: 's' type: 'Silence' bottom: 'unused' }"});
  add({"SoftmaxWithLoss", "4x3x2",
       "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'x0' bottom: 'c0' top: 'y' }", -1, 1, 0,
       "4x2"});
  add({"SoftmaxWithLossIgnore", "6x3",
       "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'x0' bottom: 'c0' top: 'y' loss_weight: "
       "2 "
       "loss_param { ignore_label: 1 normalization: FULL } }",
       -1, 1, 0, "6"});
  add({"SoftmaxWithLossSoft", "3x4",
       "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'x0' bottom: 'c0' top: 'y' loss_weight: "
       "2 loss_param { normalization: FULL weight_by_label_freqs: true class_weighting: [0.5, 1, "
       "3, 2] } }",
       -1, 1, 0, "3x4"})
      .constants = {0.7, 0.3, 0, 0, 0.1, 0.2, 0.3, 0.4, 0, 0, 1, 0.5};
  const auto mixup = [&](const std::string& name, const std::string& options, bool is_test) {
    GradientCase& test =
        add({"Mixup" + name, "4x2x3x5",
             "layer { name: 'l' type: 'Mixup' bottom: 'x0' bottom: 'c0' top: 'y' top: 's' "
             "mixup_param { num_classes: 3 " +
                 options + " } }",
             -1, 1, 0, "4"});
    test.is_test_phase = is_test;
  };
  mixup("", "alpha: 1", false);
  mixup("Cut", "cutmix_prob: 1", false);
  mixup("Test", "", true);
  add({"EuclideanLoss", "4x3 4x3",
       "layer { name: 'l' type: 'EuclideanLoss' bottom: 'x0' bottom: 'x1' top: 'y' }"});
  add(Layer1("PReLU", "2x3x4", "PReLU", "")).gap = 0.1;
  add(Layer1("PReLUShared", "2x3x4", "PReLU", "prelu_param { channel_shared: true }")).gap = 0.1;
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
  add(Layer1("MVN", "2x3x4x3", "MVN", ""));
  add(Layer1("MVNAcross", "2x3x2x3", "MVN", "mvn_param { across_channels: true }"));
  add(Layer1("MVNMeanOnly", "2x3x4x3", "MVN", "mvn_param { normalize_variance: false }"));
  add(Layer1("Normalize", "2x3x2x3", "Normalize", ""));
  add(Layer1("NormalizePerPosition", "2x3x2x3", "Normalize",
             "norm_param { across_spatial: false channel_shared: false scale_filler { value: 20 } "
             "}"))
      .tolerance = 1e-5;
  add(Layer1("Permute", "2x3x4x5", "Permute", "permute_param { order: 0 order: 2 order: 3 }"));
  add(Layer1("Tile", "2x3x4", "Tile", "tile_param { tiles: 3 }"));
  add(Layer1("ShuffleChannel", "2x6x2x3", "ShuffleChannel", "shuffle_channel_param { group: 3 }"));
  add(Layer1("Reorg", "1x4x4x6", "Reorg", ""));
  add(Layer1("ReorgReverse", "1x8x2x3", "Reorg", "reorg_param { reverse: true }"));
  add(Layer1("Flip", "2x2x3x4", "Flip", "flip_param { flip_height: true }"));
  add(Layer1("Reverse", "3x2x2", "Reverse", ""));
  for (const char* operation : {"SUM", "ASUM", "SUMSQ", "MEAN"}) {
    add(Layer1(StrCat("Reduction", operation), "2x3x4", "Reduction",
               StrCat("reduction_param { axis: 1 coeff: 1.5 operation: ", operation, " }")))
        .gap = 0.1;
  }
  add({"Crop", "2x3x6x5 2x3x3x2",
       "layer { name: 'l' type: 'Crop' bottom: 'x0' bottom: 'x1' top: 'y' crop_param { offset: 1 "
       "offset: 2 } } layer { name: 's' type: 'TanH' bottom: 'x1' top: 'z' }"});
  add(Layer1("InterpLarger", "2x2x4x3", "Interp", "interp_param { height: 9 width: 5 }"));
  add(Layer1("InterpOfAreas", "2x2x4x3", "Interp",
             "interp_param { height: 7 width: 5 align_corners: false }"));
  add(Layer1("InterpCropped", "1x2x7x6", "Interp",
             "interp_param { shrink_factor: 2 pad_beg: -1 pad_end: -1 }"));
  add({"InterpLikeSecond", "1x2x4x3 1x1x5x7",
       "layer { name: 'l' type: 'Interp' bottom: 'x0' bottom: 'x1' top: 'y' } "
       "layer { name: 's' type: 'TanH' bottom: 'x1' top: 'z' }"});
  for (const char* type : {"NEAREST", "LINEAR", "CUBIC", "AREA"}) {
    add(Layer1(StrCat("ResampleSmaller", type), "1x2x7x6", "Resample",
               StrCat("resample_param { height: 3 width: 4 type: ", type, " }")));
  }
  add(Layer1("ResampleLarger", "1x2x3x4", "Resample", "resample_param { factor: 2 type: CUBIC }"));
  add(Layer1("ImResize", "1x2x4x3", "ImResize", "imresize_param { factor: 2 }"));
  add(Layer1("ImResizeScales", "2x1x8x9", "ImResize",
             "imresize_param { factor: 1.5 scale_gap: 0.25 }"));
  add(Layer1("Upsample", "2x2x3x2", "Upsample", "upsample_param { scale: 3 }"));
  {
    GradientCase& test =
        add({"UpsampleMask", "1x2x2x2",
             "layer { name: 'l' type: 'Upsample' bottom: 'x0' bottom: 'c0' top: 'y' }", -1, 1, 0,
             "1x2x2x2"});
    test.constants = {0, 3, 12, 10, 5, 2, -1, 15};  // positions in planes of 4x4; one has none
  }
  add({"BatchReindex", "3x4",
       "layer { name: 'l' type: 'BatchReindex' bottom: 'x0' bottom: 'c0' top: 'y' }", -1, 1, 0,
       "7"});
  add({"Filter", "5x3 5x2",
       "layer { name: 'l' type: 'Filter' bottom: 'x0' bottom: 'x1' bottom: 'c0' top: 'y' top: 'z' "
       "}",
       -1, 1, 0, "5"})
      .classes = 2;
  add({"Embed", "",
       StrCat("layer { name: 'l' type: 'Embed' bottom: 'c0' top: 'y' embed_param { input_dim: 3 "
              "num_output: 4 ",
              kGaussian, "} }"),
       -1, 1, 0, "2x5"});
  add({"Axpy", "2x3 2x3x4x2 2x3x4x2",
       "layer { name: 'l' type: 'Axpy' bottom: 'x0' bottom: 'x1' bottom: 'x2' top: 'y' }"});
  add({"Axpy4D", "2x3x1x1 2x3x4x2 2x3x4x2",
       "layer { name: 'l' type: 'Axpy' bottom: 'x0' bottom: 'x1' bottom: 'x2' top: 'y' }"});
  add({"Parameter", "3x4",
       "layer { name: 'p' type: 'Parameter' top: 'w' parameter_param { shape { dim: 3 dim: 4 } } } "
       "layer { name: 'l' type: 'Eltwise' bottom: 'x0' bottom: 'w' top: 'y' }"});
  // States are exposed, so that each pass begins with the same ones. As in Caffe, the final states
  // have no gradient, so they must not count.
  const auto recurrent = [&](const std::string& type, const std::string& name,
                             const std::string& static_input) {
    const bool is_lstm = type == "LSTM";
    add({type + name, "3x2x4" + static_input,
         StrCat("layer { name: 'l' type: '", type, "' bottom: 'x0' bottom: 'c0' ",
                static_input.empty() ? "" : "bottom: 'x1' ", "bottom: 'c1' ",
                is_lstm ? "bottom: 'c2' " : "", "top: 'y' top: 'h' ", is_lstm ? "top: 'c' " : "",
                "recurrent_param { expose_hidden: true num_output: 3 ", kGaussian, "} } ",
                "layer { name: 's' type: 'Silence' bottom: 'h' ", is_lstm ? "bottom: 'c' }" : "}"),
         -1, 1, 0, is_lstm ? "3x2 1x2x3 1x2x3" : "3x2 1x2x3"})
        .classes = 2;
  };
  // Two layers in two directions, whose states have gradients, too.
  const auto stacked = [&](const std::string& type, const std::string& name,
                           const std::string& static_input) {
    const bool is_lstm = type == "LSTM";
    std::string bottoms;
    const std::string inputs = "3x2x4" + static_input + " 4x2x3" + (is_lstm ? " 4x2x3" : "");
    for (size_t i = 1; i < Words(inputs).size(); ++i) bottoms += StrCat("bottom: 'x", i, "' ");
    add({type + name, inputs,
         StrCat("layer { name: 'l' type: '", type, "' bottom: 'x0' bottom: 'c0' ", bottoms,
                "top: 'y' top: 'h' ", is_lstm ? "top: 'c' " : "",
                "recurrent_param { expose_hidden: true backprop_states: true num_layers: 2 "
                "bidirectional: true num_output: 3 ",
                kGaussian, "} }"),
         -1, 1, 0, "3x2"})
        .classes = 2;
  };
  for (const char* type : {"LSTM", "RNN", "GRU"}) {
    recurrent(type, "", "");
    recurrent(type, "Static", " 2x5");
    stacked(type, "Stacked", "");
    stacked(type, "StackedStatic", " 2x5");
  }
  const auto projected = [&](const std::string& name, const std::string& inputs,
                             const std::string& options) {
    std::string bottoms;
    for (size_t i = 1; i < Words(inputs).size(); ++i) bottoms += StrCat("bottom: 'x", i, "' ");
    add({name, inputs,
         StrCat("layer { name: 'l' type: 'LSTM' bottom: 'x0' bottom: 'c0' ", bottoms,
                "top: 'y' top: 'h' top: 'c' recurrent_param { expose_hidden: true "
                "backprop_states: true num_output: 4 projection_size: 2 ",
                options, kGaussian, "} }"),
         -1, 1, 0, "3x2"})
        .classes = 2;
  };
  projected("LSTMProjected", "3x2x4 1x2x2 1x2x4", "");
  projected("LSTMProjectedStackedStatic", "3x2x4 2x5 4x2x2 4x2x4",
            "num_layers: 2 bidirectional: true ");
  const std::string three = "bottom: 'x0' bottom: 'x1' bottom: 'x2' ";
  const auto attention = [&](const std::string& name, const std::string& inputs,
                             const std::string& mask, const std::string& options) {
    add({name, inputs,
         StrCat("layer { name: 'l' type: 'Attention' ", three, mask.empty() ? "" : "bottom: 'c0' ",
                "top: 'y' attention_param { ", options, " } }"),
         -1, 1, 0, mask})
        .classes = 2;
  };
  attention("Attention", "2x3x4 2x5x4 2x5x6", "", "");
  attention("AttentionHeads", "2x3x8 2x3x4 2x3x2", "2x3", "num_heads: 4 num_kv_heads: 2");
  attention("AttentionCausal", "1x4x4 1x6x4 1x6x4", "", "num_heads: 2 causal: true scale: 0.7");
  const auto heads = [&](const std::string& name, const std::string& inputs,
                         const std::string& mask, const std::string& options) {
    std::string bottoms;
    for (size_t i = 0; i < Words(inputs).size(); ++i) bottoms += StrCat("bottom: 'x", i, "' ");
    add({"MultiHeadAttention" + name, inputs,
         StrCat("layer { name: 'l' type: 'MultiHeadAttention' ", bottoms,
                mask.empty() ? "" : "bottom: 'c0' ", "top: 'y' attention_param { ", options,
                " weight_filler { type: 'gaussian' std: 0.5 } } }"),
         -1, 1, 0, mask})
        .classes = 2;
  };
  heads("", "2x3x4", "", "num_heads: 2");
  heads("Masked", "2x5x4", "2x5", "num_heads: 2 bias_term: false");
  heads("Causal", "1x5x8", "", "num_heads: 4 num_kv_heads: 2 causal: true rotary_base: 100");
  heads("Context", "2x3x4 2x5x3", "2x5", "num_heads: 2 rotary_base: 100");
  add(Layer1(
      "GroupNorm", "2x4x3x2", "GroupNorm",
      StrCat("group_norm_param { num_groups: 2 scale_filler { type: 'gaussian' std: 1 } }")));
  add(Layer1("GroupNormPlain", "2x4x3", "GroupNorm",
             "group_norm_param { num_groups: 4 affine: false eps: 0.1 }"));
  add(Layer1("InstanceNorm", "2x3x4x2", "InstanceNorm", ""));
  const auto binary = [&](const std::string& operation, const std::string& inputs) {
    GradientCase& test =
        add({"Binary" + operation + std::to_string(cases.size()), inputs,
             "layer { name: 'l' type: 'Binary' bottom: 'x0' bottom: 'x1' top: 'y' binary_param { "
             "operation: " +
                 operation + " } }"});
    if (operation == "MAXIMUM" || operation == "MINIMUM") test.is_distinct = true;
    if (operation == "DIVIDE" || operation == "POWER") test.low = 0.5, test.high = 2;
  };
  for (const char* operation :
       {"ADD", "SUBTRACT", "MULTIPLY", "DIVIDE", "MAXIMUM", "MINIMUM", "POWER"}) {
    for (const char* inputs : {"2x3 2x3", "3x1 2x3x4", "4 2x3x1", "2x1x3x1 5x1x2", "2x3 1"})
      binary(operation, inputs);
  }
  for (const char* inputs : {"2x3 2x3", "3x1 2x1x4"}) {
    add({std::string("Where") + inputs[0], inputs,
         "layer { name: 'l' type: 'Where' bottom: 'c0' bottom: 'x0' bottom: 'x1' top: 'y' }"});
    cases.back().constant_inputs = "2x3x4";
    if (inputs[0] == '2') cases.back().constant_inputs = "2x1";
    cases.back().classes = 2;
  }
  const auto picking = [&](const std::string& name, const std::string& inputs,
                           const std::string& layer, const std::string& indices,
                           std::vector<double> values) {
    GradientCase& test = add({name, inputs, "layer { name: 'l' " + layer + " }"});
    test.constant_inputs = indices;
    test.constants = std::move(values);
  };
  picking("Gather", "4x3", "type: 'Gather' bottom: 'x0' bottom: 'c0' top: 'y'", "5",
          {3, 0, -1, 1, -1});
  picking("GatherAxis", "2x4x3",
          "type: 'Gather' bottom: 'x0' bottom: 'c0' top: 'y' gather_param { axis: -2 }", "2x3",
          {3, 0, -1, 1, 3, -4});
  for (const char* add_option : {"true", "false"}) {
    picking(StrCat("ScatterAdd_", add_option), "2x4 2x3",
            StrCat("type: 'Scatter' bottom: 'x0' bottom: 'c0' bottom: 'x1' top: 'y' scatter_param "
                   "{ axis: 1 add: ",
                   add_option, " }"),
            "2x3", {0, 3, 0, -1, -2, 3});
  }
  add(Layer1("Cast", "2x3", "Cast", "cast_param { type: FP64 }"));
  add(Layer1("TopK", "2x5x3", "TopK", "top_k_param { k: 2 axis: 1 }")).is_distinct = true;
  add(Layer1("TopKSmallest", "3x5", "TopK", "top: 'places' top_k_param { k: 3 largest: false }"))
      .is_distinct = true;
  add(Layer1("LayerScale", "2x3x4", "LayerScale", "layer_scale_param { initial: 0.7 }"));
  const auto formula = [&](const std::string& name, const std::string& inputs,
                           const std::string& expr) -> GradientCase& {
    std::string bottoms;
    for (size_t i = 0; i < Words(inputs).size(); ++i) bottoms += StrCat("bottom: 'x", i, "' ");
    return add({"Expression" + name, inputs,
                StrCat("layer { name: 'l' type: 'Expression' ", bottoms,
                       "top: 'y' expression_param { expr: '", expr, "' } }")});
  };
  formula("", "2x3x4", "x * sigmoid(1.702 * x) - gelu(x) * erf(x) / (2 + cos(x))");
  formula("Broadcast", "2x3x4 3x1 4", "x * y^2 + sin(z) * tanh(x + y)");
  formula("OfLogarithms", "2x3x4", "log(x) * sqrt(x) + rsqrt(x) - x^x").low = 0.5;
  formula("Softmax", "2x5x3", "exp(x - max(x, axis=1)) / sum(exp(x - max(x, axis=1)), axis=1)");
  formula("Normalized", "3x4", "(x - mean(x, axis=0)) * rsqrt(mean(x * x, axis=0) + 0.1)");
  formula("Choices", "2x3x4 2x3x4", "where(x < y, softplus(x), min(x, y)) + relu(x) * abs(y)");
  add(Layer1("PixelShuffle", "2x8x2x3", "PixelShuffle", ""));
  add(Layer1("PatchEmbed", "2x3x4x6", "PatchEmbed",
             StrCat("patch_embed_param { num_output: 5 patch_size: 2 ", kGaussian, "}")));
  add(Layer1("Softplus", "2x3x4", "Softplus", ""));
  add(Layer1("DropPath", "6x2x3", "DropPath", "drop_path_param { drop_ratio: 0.4 }"));
  add(Layer1(
      "Lstm", "6x4", "Lstm",
      StrCat("lstm_param { num_output: 3 batch_size: 2 clipping_threshold: 50 ", kGaussian, "}")));
  add({"LSTMUnit", "1x2x3 1x2x12",
       "layer { name: 'l' type: 'LSTMUnit' bottom: 'x0' bottom: 'x1' bottom: 'c0' top: 'y' top: "
       "'z' }",
       -1, 1, 0, "1x2"})
      .classes = 2;
  const auto loss = [&](const std::string& name, const std::string& type, const std::string& inputs,
                        const std::string& constants, const std::string& options) -> GradientCase& {
    std::string bottoms;
    for (size_t i = 0; i < Words(inputs).size(); ++i) bottoms += StrCat("bottom: 'x", i, "' ");
    for (size_t i = 0; i < Words(constants).size(); ++i) bottoms += StrCat("bottom: 'c", i, "' ");
    return add({name, inputs,
                StrCat("layer { name: 'l' type: '", type, "' ", bottoms, "top: 'y' loss_weight: 2 ",
                       options, " }"),
                -1, 1, 0, constants});
  };
  loss("HingeLoss", "HingeLoss", "4x3", "4", "");
  loss("HingeLossL2", "HingeLoss", "4x3", "4", "hinge_loss_param { norm: L2 }");
  loss("MultinomialLogisticLoss", "MultinomialLogisticLoss", "4x3", "4", "").low = 0.1;
  loss("SigmoidCrossEntropyLoss", "SigmoidCrossEntropyLoss", "4x3", "4x3",
       "loss_param { ignore_label: 2 normalization: VALID }");
  loss("SigmoidCrossEntropyLossWeighted", "SigmoidCrossEntropyLoss", "4x3", "4x3",
       "loss_param { ignore_label: 2 positive_weight: 3.5 }");
  loss("KLDivLoss", "KLDivLoss", "4x3", "4x3", "").classes = 2;
  loss("KLDivLossOfLogarithms", "KLDivLoss", "4x3", "4x3",
       "kl_div_loss_param { log_target: true } loss_param { normalization: NONE }")
      .constants = {-0.5, -2, -1, -3};
  for (const char* options : {"smooth: 0.5", "squares: true"}) {
    GradientCase& test = loss(StrCat("DiceLoss", options[1]), "DiceLoss", "2x3x4", "2x3x4",
                              StrCat("dice_loss_param { ", options, " }"));
    test.low = 0.1;
    test.classes = 2;
  }
  loss("L1Loss", "L1Loss", "4x3 4x3", "", "").is_distinct = true;
  loss("SmoothL1Loss", "SmoothL1Loss", "4x3 4x3", "", "").high = 3;
  loss("SmoothL1LossWeighted", "SmoothL1Loss", "4x3 4x3", "4x3", "").classes = 2;
  loss("SmoothL1LossSigma", "SmoothL1Loss", "4x3 4x3", "4x3 4x3",
       "smooth_l1_loss_param { sigma: 1.5 }");
  const std::string pre_fixed = "loss_param { normalization: PRE_FIXED pre_fixed_normalizer: 1.5 }";
  loss("SmoothL1LossOHEM", "SmoothL1LossOHEM", "2x3x1x2 2x3x1x2", "", pre_fixed).high = 3;
  loss("SoftmaxWithLossOHEM", "SoftmaxWithLossOHEM", "4x3x2", "4x2", pre_fixed);
  loss("SoftmaxWithLossWeighted", "SoftmaxWithLoss", "4x3x2", "4x2",
       "loss_param { ignore_label: 1 weight_by_label_freqs: true class_weighting: [0.5, 1, 3] }");
  for (const std::string type : {"FocalLoss", "SoftmaxWithFocalLoss"}) {
    loss(type, type, "4x3x2", "4x2",
         "focal_loss_param { gamma: 1.5 } loss_param { ignore_label: 2 }");
    loss(type + "Linear", type, "4x2x3", "4x2",
         "focal_loss_param { type: LINEAR gamma: 1.5 beta: 0.5 } softmax_param { axis: 2 }");
  }
  loss("TripletLoss", "TripletLoss", "4x3 4x3 4x3", "", "triplet_loss_param { margin: 0.7 }");
  loss("CenterLoss", "CenterLoss", "4x5", "4",
       "center_loss_param { num_output: 3 center_filler { type: 'gaussian' } "
       "}");
  loss("L1LossOfOne", "L1Loss", "2x3x2x2", "", "").gap = 0.1;
  loss("L1LossPerLocation", "L1Loss", "2x3x2x2 2x3x2x2", "",
       "l1_loss_param { l2_per_location: true normalize_by_num_entries: true plateau: 0.3 }");
  // Two sequences of five steps, three classes.
  {
    GradientCase& test = loss("CTCLoss", "CTCLoss", "5x2x3", "5x2 2x2",
                              "ctc_loss_param { output_delay: 1 blank_index: -1 }");
    test.constants = {0, 0, 1, 1, 1, 1, 1, 1, 1, 0};
    test.classes = 2;
  }
  loss("CTCLossNoMerging", "CTCLoss", "5x2x3", "2x2",
       "ctc_loss_param { ctc_merge_repeated: false }")
      .classes = 2;
  loss("WarpCTC", "WarpCTC", "5x2x3", "2x4", "");
  loss("CtcLoss", "CtcLoss", "5x2x3", "2x3", "ctc_loss_param { blank_label: 1 }");
  loss("WarpCTCLoss", "WarpCTCLoss", "5x2x3", "2 2 2x2", "ctc_loss_param { blank_index: 2 }")
      .constants = {5, 3};
  loss("ContrastiveLoss", "ContrastiveLoss", "4x3 4x3", "4", "contrastive_loss_param { margin: 2 }")
      .tolerance = 1e-3;  // the formula guards the distance with 1e-4
  loss("ContrastiveLossLegacy", "ContrastiveLoss", "4x3 4x3", "4",
       "contrastive_loss_param { margin: 4 legacy_version: true }");
  loss("InfogainLoss", "InfogainLoss", "4x3", "4 3x3", "");
  const auto regions = [&](const std::string& type, const std::string& options, int channels) {
    GradientCase& test =
        add({type, StrCat("2x", channels, "x6x7"),
             StrCat("layer { name: 'l' type: '", type,
                    "' bottom: 'x0' bottom: 'c0' top: 'y' propagate_down: true propagate_down: "
                    "false ",
                    options, " }"),
             -1, 1, 0, "4x5"});
    test.constants = {0, 0, 0, 55, 47, 1, 9, 5, 30, 42, 1, -9, -20, 20, 13, 0, 30, 30, 80, 70};
    return &test;
  };
  regions("ROIPooling", "roi_pooling_param { pooled_h: 2 pooled_w: 3 spatial_scale: 0.125 }", 2)
      ->is_distinct = true;
  regions("ROIAlign", "roi_align_param { pooled_h: 2 pooled_w: 3 spatial_scale: 0.125 }", 2);
  regions("PSROIPooling",
          "psroi_pooling_param { output_dim: 2 group_size: 2 spatial_scale: 0.125 }", 8);
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
  // Objects are constants: two in one box, one for another anchor, and one without a box.
  const auto yolo = [&](const std::string& name, const std::string& type,
                        const std::string& options) {
    loss(type + name, type, "2x16x2x3", "2x20",
         StrCat(options, " propagate_down: true propagate_down: false"))
        .constants = {2,   0.4, 0.3, 0.3, 0.5, 0, 0.45, 0.4, 0.3, 0.4, 1,    0.9, 0.8, 0.9,
                      0.3, 0,   0,   0,   0,   0, 1,    0.1, 0.6, 0.2, 0.25, 0,   0,   0,
                      0,   0,   0,   0,   0,   0, 0,    0,   0,   0,   0,    0};
  };
  const std::string region =
      "num: 2 num_class: 3 thresh: 0.4 biases: 1 biases: 0.8 biases: 2.5 "
      "biases: 0.5 rescore: 0 ";
  yolo("", "RegionLoss", "region_loss_param { " + region + "}");
  yolo("Sigmoid", "RegionLoss", "region_loss_param { " + region + "softmax: 0 bias_match: 0 }");
  const std::string yolo3 =
      "num: 2 num_class: 3 anchors_scale: 16 thresh: 0.4 coord_scale: 1 "
      "mask: 2 mask: 0 biases: 16 biases: 12 biases: 9 biases: 9 biases: 40 "
      "biases: 8 ";
  yolo("", "Yolov3", "yolov3_param { " + yolo3 + "}");
  yolo("Squares", "Yolov3", "yolov3_param { use_logic_gradient: true " + yolo3 + "}");
  // Objects and prior boxes are constants; the matches do not change for small steps.
  const auto multibox = [&](const std::string& name, const std::string& options, int locations) {
    GradientCase& test =
        add({"MultiBoxLoss" + name, StrCat("2x", 16 * locations, " 2x12"),
             StrCat("layer { name: 'map' type: 'DummyData' top: 'map' top: 'image' "
                    "dummy_data_param { shape { dim: 1 dim: 1 dim: 2 dim: 2 } shape { dim: 1 dim: "
                    "3 dim: 40 dim: 40 } } } "
                    "layer { name: 'p' type: 'PriorBox' bottom: 'map' bottom: 'image' top: 'p' "
                    "prior_box_param { min_size: 18 variance: 0.1 variance: 0.1 variance: 0.2 "
                    "variance: 0.2 } } "
                    "layer { name: 'l' type: 'MultiBoxLoss' bottom: 'x0' bottom: 'x1' bottom: 'p' "
                    "bottom: 'c0' top: 'y' multibox_loss_param { num_classes: 3 ",
                    options, " } }"),
             -1, 1, 0, "1x1x3x8"});
    test.tolerance = 1e-5;
    // item, label, instance, xmin, ymin, xmax, ymax, difficult
    test.constants = {0,    1,    0,   0.05, 0.1, 0.5, 0.45, 0,   0,   2,   0,   0.5,
                      0.45, 0.95, 0.9, 0,    1,   2,   0,    0.1, 0.5, 0.6, 1.0, 1};
  };
  multibox("", "", 1);
  multibox("CenterSize", "code_type: CENTER_SIZE overlap_threshold: 0.3 loc_weight: 2", 1);
  multibox("CornerSizeL2", "code_type: CORNER_SIZE loc_loss_type: L2 mining_type: NONE", 1);
  multibox("Logistic", "conf_loss_type: LOGISTIC", 1);
  multibox("HardExample", "mining_type: HARD_EXAMPLE sample_size: 3", 1);
  multibox("OwnLocations", "share_location: false mining_type: NONE match_type: BIPARTITE", 3);
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
  return cases;
}

std::string InputLayer(const std::string& name, const std::string& shape) {
  std::string dims;
  if (shape != "scalar") {
    std::istringstream stream(shape);
    for (std::string dim; std::getline(stream, dim, 'x');) dims += " dim: " + dim;
  }
  return "layer { name: '" + name + "' type: 'Input' top: '" + name + "' input_param { shape {" +
         dims + " } } }\n";
}

class GradientTest : public ::testing::TestWithParam<GradientCase> {
 protected:
  void SetUp() override {
    if (GetParam().device == DeviceKind::kCpu) return;
    try {
      MakeDevice(GetParam().device);
    } catch (const DeviceError& error) {
      GTEST_SKIP() << error.what();
    }
    Caffe::set_mode(Caffe::GPU);
  }
  void TearDown() override { Caffe::set_mode(Caffe::CPU); }

  void Build() {
    const GradientCase& test = GetParam();
    std::string text =
        "name: 'check' force_backward: true default_forward_type: DOUBLE default_backward_type: "
        "DOUBLE\n";
    const std::vector<std::string> shapes = Words(test.inputs),
                                   constants = Words(test.constant_inputs);
    for (size_t i = 0; i < shapes.size(); ++i) text += InputLayer(StrCat("x", i), shapes[i]);
    for (size_t i = 0; i < constants.size(); ++i) text += InputLayer(StrCat("c", i), constants[i]);
    NetParameter param;
    ParseTextProto(text + test.layers, test.name, &param);
    param.mutable_state()->set_phase(test.is_test_phase ? TEST : TRAIN);
    net_ = std::make_unique<Net>(param, NetOptions{.seed = 3});
    for (size_t i = 0; i < shapes.size(); ++i) {
      Blob& blob = *net_->blob_by_name(StrCat("x", i));
      FillInput(blob, i);
      inputs_.push_back(StrCat("x", i));
    }
    for (size_t i = 0; i < constants.size(); ++i) {
      Blob& blob = *net_->blob_by_name(StrCat("c", i));
      double* values = blob.mutable_cpu_data<double>();
      for (int64_t k = 0; k < blob.count(); ++k) values[k] = static_cast<double>(k % test.classes);
      if (i == 0) std::copy(test.constants.begin(), test.constants.end(), values);
    }
    for (const Net::LearnableParam& learnable : net_->learnable_params()) {
      const std::string layer = learnable.name.substr(0, learnable.name.rfind('.'));
      if (net_->layer_by_name(layer)->type() == "BatchNorm" && !learnable.has_gradient) {
        // Global statistics: any positive number.
        double* values = learnable.blob->mutable_cpu_data<double>();
        for (int64_t k = 0; k < learnable.blob->count(); ++k)
          values[k] = 0.7 + 0.1 * static_cast<double>(k);
      }
    }
  }

  void FillInput(Blob& blob, uint64_t index) {
    const GradientCase& test = GetParam();
    const RandomStream random(2, index);
    double* values = blob.mutable_cpu_data<double>();
    for (int64_t i = 0; i < blob.count(); ++i) {
      const double u = ToUniform(random.Bits(i));
      if (test.is_distinct) {
        // Neighbours and operands differ by much more than the step.
        values[i] = 0.01 * static_cast<double>((i * 37 + static_cast<int64_t>(index) * 11) % 211);
        continue;
      }
      values[i] = test.low + (test.high - test.low) * u;
      if (std::abs(values[i]) < test.gap) values[i] += values[i] < 0 ? -test.gap : test.gap;
    }
  }

  std::unique_ptr<Net> net_;
  std::vector<std::string> inputs_;
};

TEST_P(GradientTest, AgreesWithFiniteDifferences) {
  const GradientCase& test = GetParam();
  ASSERT_NO_FATAL_FAILURE(Build());
  for (const GradientDifference& one :
       CheckGradients(*net_, inputs_, {.step = 1e-5, .tolerance = test.tolerance})) {
    const std::string layer = one.variable.substr(0, one.variable.rfind('.'));
    // Centres move by means, not by the loss's gradient.
    if (net_->has_layer(layer) && net_->layer_by_name(layer)->type() == "CenterLoss") continue;
    EXPECT_TRUE(one.passes) << one.variable << "[" << one.element << "] of " << one.count << ": "
                            << one.gradient << ", by differences " << one.estimate;
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, GradientTest, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

std::vector<GradientCase> CasesOnGpu() {
  std::vector<GradientCase> cases;
  if (IsDeviceBuilt(DeviceKind::kCuda)) cases = Cases();
  for (GradientCase& test : cases) test.device = DeviceKind::kCuda;
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Gpu, GradientTest, ::testing::ValuesIn(CasesOnGpu()),
                         [](const auto& info) { return info.param.name; });

TEST(LayersTest, EveryLayerWithABackwardIsChecked) {
  std::set<std::string> checked;
  for (const GradientCase& test : Cases()) {
    NetParameter param;
    ParseTextProto(test.layers, test.name, &param);
    for (const LayerParameter& layer : param.layer()) checked.insert(layer.type());
  }
  for (const std::string& type : LayerRegistry::LayerTypeList()) {
    if (type == "Python") continue;  // tests/python
    LayerParameter param;
    param.set_name("probe");
    param.set_type(type);
    bool has_backward = true;
    try {
      has_backward = LayerRegistry::CreateLayer(param)->traits().has_backward;
    } catch (const Unsupported&) {
      has_backward = false;  // TRT
    } catch (const Error&) {
      // The layer needs options; this includes data layers, which have no backward.
      static const std::set<std::string> kForwardOnly = {
          "BoxAnnotatorOHEM", "DetectionEvaluate",   "DetectionOutput",
          "Downsample",       "HDF5Output",          "PriorBox",
          "Tokens",           "YoloDetectionOutput", "Yolov3DetectionOutput"};
      has_backward = type.find("Data") == std::string::npos && kForwardOnly.count(type) == 0;
    }
    if (has_backward) {
      EXPECT_EQ(checked.count(type), 1u) << type;
    }
  }
}

TEST(LayersTest, EveryFileRegistersItsLayer) {
  // "batch_norm_layer" and "BatchNorm" have the same letters.
  const auto letters = [](std::string text) {
    std::erase(text, '_');
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
  };
  std::set<std::string> types;
  for (const std::string& type : LayerRegistry::LayerTypeList()) types.insert(letters(type));
  const std::filesystem::path folder = testing::SourcePath("src/caffe/layers");
  constexpr std::string_view kEnding = "_layer.cpp";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::string file = entry.path().filename();
    if (!file.ends_with(kEnding) || file == "loss_layer.cpp") continue;
    file.resize(file.size() - kEnding.size());
    EXPECT_EQ(types.count(letters(file)), 1u) << file;
  }
}

}  // namespace
}  // namespace caffe
