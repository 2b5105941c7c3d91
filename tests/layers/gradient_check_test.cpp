// Every layer's gradients against central differences, in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "caffe/core/philox.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/net.hpp"

namespace caffe {
namespace {

struct GradientCase {
  const char* name;
  const char* inputs;     // Input layers' shapes: "x: 2 3 5 5; t: 2"
  const char* layer;      // the layer under test, without its name and bottoms
  const char* top = "y";  // several: "y z"
  bool is_training = true;
  // Inputs that are labels: integers below `classes`, no gradient.
  const char* labels = "";
  int classes = 3;
  // Inputs are spread out by more than the step, so that no maximum or kink is crossed.
  bool is_spread = false;
};

const GradientCase kCases[] = {
    {"Convolution", "x: 2 3 5 4",
     R"(type: "Convolution" convolution_param { num_output: 4 kernel_size: 3 pad: 1 weight_filler { type: "gaussian" } bias_filler { type: "gaussian" } })"},
    {"ConvolutionStrideGroup", "x: 2 4 6 5",
     R"(type: "Convolution" convolution_param { num_output: 6 group: 2 kernel_h: 3 kernel_w: 2 stride_h: 2 stride_w: 1 pad_h: 1 pad_w: 0 weight_filler { type: "gaussian" } })"},
    {"ConvolutionDilation", "x: 1 2 7 7",
     R"(type: "Convolution" convolution_param { num_output: 2 kernel_size: 3 dilation: 2 bias_term: false weight_filler { type: "gaussian" } })"},
    {"Convolution1d", "x: 2 2 6",
     R"(type: "Convolution" convolution_param { num_output: 3 kernel_size: 3 weight_filler { type: "gaussian" } })"},
    {"Convolution3d", "x: 1 2 3 4 3",
     R"(type: "Convolution" convolution_param { num_output: 2 kernel_size: 2 weight_filler { type: "gaussian" } })"},
    {"ConvolutionAxis2", "x: 2 2 3 4 4",
     R"(type: "Convolution" convolution_param { axis: 2 num_output: 2 kernel_size: 2 weight_filler { type: "gaussian" } })"},
    {"PoolingMax", "x: 2 2 5 5",
     R"(type: "Pooling" pooling_param { pool: MAX kernel_size: 3 stride: 2 pad: 1 })", "y", true,
     "", 3, true},
    {"PoolingAve", "x: 2 2 5 5",
     R"(type: "Pooling" pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 })"},
    {"InnerProduct", "x: 3 2 4",
     R"(type: "InnerProduct" inner_product_param { num_output: 5 weight_filler { type: "gaussian" } bias_filler { type: "gaussian" } })"},
    {"InnerProductTranspose", "x: 3 2 4",
     R"(type: "InnerProduct" inner_product_param { num_output: 5 axis: 2 transpose: true weight_filler { type: "gaussian" } })"},
    {"ReLU", "x: 2 3 4", R"(type: "ReLU")", "y", true, "", 3, true},
    {"ReLULeaky", "x: 2 3 4", R"(type: "ReLU" relu_param { negative_slope: 0.3 })", "y", true, "",
     3, true},
    {"Sigmoid", "x: 2 3 4", R"(type: "Sigmoid")"},
    {"TanH", "x: 2 3 4", R"(type: "TanH")"},
    {"LRN", "x: 2 7 3 3", R"(type: "LRN" lrn_param { local_size: 5 alpha: 0.5 beta: 0.75 k: 2 })"},
    {"LRNWithin", "x: 2 2 5 5",
     R"(type: "LRN" lrn_param { local_size: 3 alpha: 0.5 norm_region: WITHIN_CHANNEL })"},
    {"Dropout", "x: 4 5", R"(type: "Dropout" dropout_param { dropout_ratio: 0.4 })"},
    {"BatchNorm", "x: 4 3 2 3", R"(type: "BatchNorm")"},
    {"BatchNorm2d", "x: 6 3", R"(type: "BatchNorm")"},
    {"BatchNormGlobal", "x: 4 3 2 3",
     R"(type: "BatchNorm" batch_norm_param { use_global_stats: true })"},
    {"BatchNormScaleBias", "x: 4 3 2 3",
     R"(type: "BatchNorm" batch_norm_param { scale_bias: true scale_filler { type: "gaussian" } bias_filler { type: "gaussian" } })"},
    {"Scale", "x: 2 3 4",
     R"(type: "Scale" scale_param { bias_term: true filler { type: "gaussian" } })"},
    {"ScaleTwoBottoms", "x: 2 3 4; s: 3 4", R"(type: "Scale" scale_param { axis: 1 })"},
    {"Bias", "x: 2 3 4", R"(type: "Bias" bias_param { filler { type: "gaussian" } })"},
    {"BiasTwoBottoms", "x: 2 3 4; b: 2 3", R"(type: "Bias" bias_param { axis: 0 })"},
    {"EltwiseSum", "a: 2 3; b: 2 3; c: 2 3",
     R"(type: "Eltwise" eltwise_param { coeff: 1 coeff: -2 coeff: 0.5 })"},
    {"EltwiseProd", "a: 2 3; b: 2 3; c: 2 3",
     R"(type: "Eltwise" eltwise_param { operation: PROD })"},
    {"EltwiseMax", "a: 2 3; b: 2 3", R"(type: "Eltwise" eltwise_param { operation: MAX })", "y",
     true, "", 3, true},
    {"Concat", "a: 2 3 2; b: 2 1 2", R"(type: "Concat")"},
    {"Slice", "x: 2 5 2", R"(type: "Slice" slice_param { slice_point: 2 })", "y z"},
    {"Split", "x: 2 3", R"(type: "Split")", "y z"},
    {"Flatten", "x: 2 3 2", R"(type: "Flatten")"},
    {"Reshape", "x: 2 3 2", R"(type: "Reshape" reshape_param { shape { dim: 0 dim: -1 } })"},
    {"Softmax", "x: 2 4 3", R"(type: "Softmax")"},
    {"SoftmaxWithLoss", "x: 4 3 2; t: 4 2",
     R"(type: "SoftmaxWithLoss" loss_param { ignore_label: 1 })", "y", true, "t"},
    {"EuclideanLoss", "a: 3 4; b: 3 4", R"(type: "EuclideanLoss")"},
    {"Silence", "x: 2 3", R"(type: "Silence")", ""},
};

std::vector<std::string> SplitAt(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    part.erase(0, part.find_first_not_of(' '));
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

NetParameter Definition(const GradientCase& test) {
  std::string net =
      "name: 'gradient' force_backward: true default_forward_type: DOUBLE default_backward_type: "
      "DOUBLE\n";
  std::string layer = std::string("layer { name: 'layer' ") + test.layer;
  for (const std::string& input : SplitAt(test.inputs, ';')) {
    const size_t colon = input.find(':');
    const std::string name = input.substr(0, colon);
    net += "layer { name: '" + name + "' type: 'Input' top: '" + name + "' input_param { shape {";
    for (const std::string& dim : SplitAt(input.substr(colon + 1), ' ')) net += " dim: " + dim;
    net += " } } }\n";
    layer += " bottom: '" + name + "'";
  }
  for (const std::string& top : SplitAt(test.top, ' ')) layer += " top: '" + top + "'";
  NetParameter param;
  ParseTextProto(net + layer + " }", test.name, &param);
  param.mutable_state()->set_phase(test.is_training ? TRAIN : TEST);
  return param;
}

class GradientCheckTest : public ::testing::TestWithParam<GradientCase> {
 protected:
  // Sum of the outputs, each weighted by a fixed random number.
  double Objective(Net& net) {
    net.set_pass(3);  // the same dropout each time
    net.Forward();
    double sum = 0;
    for (size_t k = 0; k < net.output_blobs().size(); ++k) {
      const Blob& blob = *net.output_blobs()[k];
      for (int64_t i = 0; i < blob.count(); ++i)
        sum += Coefficient(k, i) * blob.cpu_data<double>()[i];
    }
    return sum;
  }
  static double Coefficient(size_t output, int64_t index) {
    return 2 * ToUniform(RandomStream(5, output).Bits(index)) - 1;
  }

  void FillInputs(Net& net, const GradientCase& test) {
    for (size_t k = 0; k < net.input_blobs().size(); ++k) {
      Blob& blob = *net.input_blobs()[k];
      const bool is_label = net.input_names()[k] == test.labels;
      for (int64_t i = 0; i < blob.count(); ++i) {
        const uint32_t bits = RandomStream(1, k).Bits(i);
        double value = 2 * ToUniform(bits) - 1;
        if (is_label) value = ToRange(bits, static_cast<uint32_t>(test.classes));
        if (test.is_spread) {
          // A permutation of distinct values, none near zero.
          value = 0.1 * static_cast<double>((i * 37 + static_cast<int64_t>(k) * 13) % 101) - 4.95 +
                  0.01 * static_cast<double>(k);
        }
        blob.mutable_cpu_data<double>()[i] = value;
      }
    }
  }

  void Compare(Net& net, const std::string& what, Blob& blob, const std::vector<double>& analytic) {
    constexpr double kStep = 1e-5;
    for (int64_t i = 0; i < blob.count(); ++i) {
      const double kept = blob.cpu_data<double>()[i];
      blob.mutable_cpu_data<double>()[i] = kept + kStep;
      const double above = Objective(net);
      blob.mutable_cpu_data<double>()[i] = kept - kStep;
      const double below = Objective(net);
      blob.mutable_cpu_data<double>()[i] = kept;
      const double numeric = (above - below) / (2 * kStep);
      EXPECT_NEAR(analytic[i], numeric, 1e-6 + 1e-5 * std::abs(numeric)) << what << "[" << i << "]";
    }
  }
};

TEST_P(GradientCheckTest, AgreesWithCentralDifferences) {
  const GradientCase& test = GetParam();
  Net net(Definition(test), {.seed = 9});
  FillInputs(net, test);
  if (std::string(test.name) == "BatchNormGlobal") {
    // Statistics as if learned: mean 0.2, variance 1.5, counted twice.
    for (int i = 0; i < 3; ++i) {
      Blob& blob = *net.layer_params("layer")[i];
      std::fill_n(blob.mutable_cpu_data<double>(), blob.count(), i == 0 ? 0.4 : i == 1 ? 3.0 : 2.0);
    }
  }
  Objective(net);
  net.ClearParamDiffs();
  for (size_t k = 0; k < net.output_blobs().size(); ++k) {
    Blob& blob = *net.output_blobs()[k];
    for (int64_t i = 0; i < blob.count(); ++i)
      blob.mutable_cpu_diff<double>()[i] = Coefficient(k, i);
  }
  net.Backward();
  const auto diff_of = [](const Blob& blob) {
    return std::vector<double>(blob.cpu_diff<double>(), blob.cpu_diff<double>() + blob.count());
  };
  std::vector<std::vector<double>> input_diffs, param_diffs;
  for (const Blob* blob : net.input_blobs()) input_diffs.push_back(diff_of(*blob));
  for (const auto& learnable : net.learnable_params())
    param_diffs.push_back(diff_of(*learnable.blob));
  for (size_t k = 0; k < net.input_blobs().size(); ++k) {
    if (net.input_names()[k] == test.labels) continue;
    Compare(net, net.input_names()[k], *net.input_blobs()[k], input_diffs[k]);
  }
  for (size_t k = 0; k < net.learnable_params().size(); ++k) {
    const auto& learnable = net.learnable_params()[k];
    if (learnable.lr_mult != 0) Compare(net, learnable.name, *learnable.blob, param_diffs[k]);
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, GradientCheckTest, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(GradientCheckCompletenessTest, EveryLayerWithAGradientHasACase) {
  std::set<std::string> covered;
  for (const GradientCase& test : kCases) {
    const NetParameter definition = Definition(test);
    for (const LayerParameter& layer : definition.layer()) covered.insert(layer.type());
  }
  const std::set<std::string> without_gradient = {"Accuracy", "Data", "DummyData", "Input",
                                                  "MemoryData"};
  for (const std::string& type : LayerRegistry::LayerTypeList()) {
    EXPECT_TRUE(covered.count(type) > 0 || without_gradient.count(type) > 0)
        << type << " has no gradient check; add a case";
  }
}

// A registration that the linker dropped is a test failure, not a user's report.
TEST(LayerRegistryTest, EveryLayerFileLeftAnEntry) {
  const std::vector<std::string> types = LayerRegistry::LayerTypeList();
  size_t files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(CAFFE_SOURCE_DIR) + "/src/caffe/layers")) {
    const std::string name = entry.path().filename();
    files += name.ends_with("_layer.cpp") && name != "loss_layer.cpp";
  }
  EXPECT_EQ(types.size(), files);
}

TEST(LayerRegistryTest, UnknownTypeNamesTheNearestOne) {
  LayerParameter param;
  param.set_type("Convolutoin");
  try {
    LayerRegistry::CreateLayer(param);
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'Convolution'?"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace caffe
