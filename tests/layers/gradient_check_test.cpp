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
#include "tests/layers/gradient_cases.hpp"
#include "tests/support/folders.hpp"

namespace caffe {
namespace {

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

INSTANTIATE_TEST_SUITE_P(Layers, GradientTest, ::testing::ValuesIn(GradientCases::All()),
                         [](const auto& info) { return info.param.name; });

std::vector<GradientCase> CasesOnGpu() {
  std::vector<GradientCase> cases;
  if (IsDeviceBuilt(DeviceKind::kCuda)) cases = GradientCases::All();
  for (GradientCase& test : cases) test.device = DeviceKind::kCuda;
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Gpu, GradientTest, ::testing::ValuesIn(CasesOnGpu()),
                         [](const auto& info) { return info.param.name; });

TEST(LayersTest, EveryLayerWithABackwardIsChecked) {
  std::set<std::string> checked;
  for (const GradientCase& test : GradientCases::All()) {
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