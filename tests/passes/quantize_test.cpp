// Nets of precision INT8: tests which steps compute in 8 bits, the steps between them, and how
// close the numbers are to the float net's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "caffe/graph/graph.hpp"
#include "caffe/net.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/plan_report.hpp"
#include "tests/support/blob_ranges.hpp"
#include "tests/support/blob_values.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"
#include "tests/support/quantised_nets.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using ::testing::ElementsAreArray;
using testing::ErrorText;
using ::testing::HasSubstr;

using testing::ConvLayer;
using testing::HasInt8;
using testing::kImage;
using testing::LayerOn;
using testing::MatMulLayer;
using testing::ParameterLayer;
using testing::PoolLayer;
using testing::ProductLayer;
using testing::TwoBottoms;

class QuantizeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasInt8()) GTEST_SKIP() << "this processor has no instructions for 8-bit products";
  }

  std::unique_ptr<Net> Make(const std::string& layers, Precision precision, bool keep_all) const {
    NetParameter param = testing::ParseNet(kImage + layers);
    param.mutable_state()->set_phase(TEST);
    auto net = std::make_unique<Net>(
        param, NetOptions{.keep_all = keep_all,
                          .with_backward = false,
                          .seed = 7,
                          .precision = precision,
                          .calibration = precision == INT8 ? folder_.path("q.json") : ""});
    for (size_t i = 0; i < net->layers().size(); ++i) {
      const std::string type = net->layers()[i]->type();
      if (type == "Parameter") FillWithWaves(*net->layer_params(static_cast<int>(i))[0]);
      if (type != "BatchNorm") continue;
      const auto& statistics = net->layer_params(static_cast<int>(i));
      for (int64_t c = 0; c < statistics[0]->count(); ++c) {
        statistics[0]->mutable_cpu_data()[c] = 0.3F * static_cast<float>(c) - 0.5F;
        statistics[1]->mutable_cpu_data()[c] = 0.5F + static_cast<float>(c);
      }
      statistics[2]->mutable_cpu_data()[0] = 1;
    }
    float* x = net->blob_by_name("x")->mutable_cpu_data();
    for (int i = 0; i < 448; ++i) x[i] = static_cast<float>((i * 37) % 101) / 50 - 1;
    return net;
  }

  static void FillWithWaves(Blob& blob) {
    for (int64_t i = 0; i < blob.count(); ++i)
      blob.mutable_cpu_data()[i] = std::sin(static_cast<float>(i));
  }

  // Stores the ranges of the float net's values, as caffe calibrate writes them.
  void Calibrate(const std::string& layers, const std::string& without = "") const {
    const auto net = Make(layers, FP32, /*keep_all=*/true);
    net->Forward();
    testing::Ranges ranges = testing::RangesOf(*net);
    ranges.erase(without);
    testing::WriteRanges("q", ranges, folder_.path("q.json"));
  }

  // Each step with the types of the activations that it reads and writes.
  static std::vector<std::string> Steps(const Net& net) {
    std::vector<std::string> steps;
    for (const Node* node : net.graph().ScheduledNodes()) {
      if (node->outputs[0] == nullptr || node->outputs[0]->kind == ValueKind::kState) continue;
      std::string text = std::string(node->op.name());
      const ops::Epilogue* epilogue = node->op.epilogue();
      if (epilogue != nullptr) text += ops::EpilogueText(*epilogue);
      const char* separator = "(";
      for (const Value* input : node->inputs) {
        if (input == nullptr || input->kind == ValueKind::kParam ||
            input->kind == ValueKind::kState) {
          continue;
        }
        text += StrCat(separator, Name(input->desc.dtype));
        separator = ", ";
      }
      steps.push_back(StrCat(text, ") ", Name(node->outputs[0]->desc.dtype)));
    }
    return steps;
  }

  // The largest error of the output relative to its largest number.
  double Error(const std::string& layers, bool keep_all) const {
    const auto exact = Make(layers, FP32, true), quantised = Make(layers, INT8, keep_all);
    const std::vector<float> want = testing::Output(*exact), got = testing::Output(*quantised);
    double error = 0, largest = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      error = std::max(error, std::abs(static_cast<double>(want[i]) - got[i]));
      largest = std::max(largest, std::abs(static_cast<double>(want[i])));
    }
    return error / largest;
  }

  void Check(const std::string& layers, const std::vector<std::string>& steps) const {
    Calibrate(layers);
    EXPECT_THAT(Steps(*Make(layers, INT8, /*keep_all=*/false)), ElementsAreArray(steps));
    EXPECT_LT(Error(layers, /*keep_all=*/false), 0.05);
    EXPECT_LT(Error(layers, /*keep_all=*/true), 0.05);
    EXPECT_GT(Error(layers, /*keep_all=*/true), 0);  // it is quantised there too
  }

  testing::TemporaryFolder folder_;
};

TEST_F(QuantizeTest, KeepsNumbersBetweenProducts) {
  Check(ConvLayer("a", "x") + LayerOn("ReLU", "a") +
            PoolLayer("p", "a", "kernel_size: 2 stride: 2") + ConvLayer("b", "p") +
            LayerOn("ReLU", "b") + ProductLayer("ip", "b"),
        {"Reorder(float) int8", "Conv, relu(int8) uint8", "MaxPool(uint8) uint8",
         "Conv, relu(uint8) uint8", "Reorder(uint8) uint8", "Gemm(uint8) float"});
}

TEST_F(QuantizeTest, FoldsNormalisationsFirst) {
  Check(ConvLayer("a", "x") + LayerOn("BatchNorm", "a") + LayerOn("Scale", "a") +
            LayerOn("ReLU", "a") + ConvLayer("b", "a"),
        {"Reorder(float) int8", "Conv, relu(int8) uint8", "Conv(uint8) float"});
}

TEST_F(QuantizeTest, AddsInTheEpilogue) {
  Check(ConvLayer("a", "x") + LayerOn("ReLU", "a") + ConvLayer("b", "a") +
            TwoBottoms("Eltwise", "s", "a", "b") + LayerOn("ReLU", "s") + ConvLayer("c", "s"),
        {"Reorder(float) int8", "Conv, relu(int8) uint8", "Conv, add, relu(uint8, uint8) uint8",
         "Conv(uint8) float"});
}

TEST_F(QuantizeTest, SumsOfMoreThanTwoHaveAStep) {
  Check(ConvLayer("a", "x") + ConvLayer("b", "x") +
            "layer { name: 's' type: 'Eltwise' bottom: 'a' bottom: 'b' bottom: 'a' top: 's' } " +
            ConvLayer("c", "s"),
        {"Reorder(float) int8", "Conv(int8) int8", "Conv(int8) int8",
         "EltwiseSum(int8, int8, int8) int8", "Conv(int8) float"});
}

TEST_F(QuantizeTest, PartsOfAConcatenationHaveOneScale) {
  const std::string layers = ConvLayer("a", "x") + LayerOn("ReLU", "a") + ConvLayer("b", "x") +
                             TwoBottoms("Concat", "s", "a", "b") + ConvLayer("c", "s");
  Check(layers, {"Reorder(float) int8", "Conv, relu(int8) int8", "Conv(int8) int8",
                 "Concat(int8, int8) int8", "Conv(int8) float"});
  const auto net = Make(layers, INT8, false);
  for (const Node* node : net->graph().ScheduledNodes()) {
    if (node->op.name() != "Concat") continue;
    EXPECT_EQ(node->inputs[0]->desc.scale, node->outputs[0]->desc.scale);
    EXPECT_EQ(node->inputs[1]->desc.scale, node->outputs[0]->desc.scale);
  }
}

TEST_F(QuantizeTest, AveragesHaveARangeOfTheirOwn) {
  Check(ConvLayer("a", "x") + LayerOn("ReLU", "a") +
            PoolLayer("p", "a", "pool: AVE global_pooling: true") + ProductLayer("ip", "p"),
        {"Reorder(float) int8", "Conv, relu(int8) uint8", "AvePool(uint8) uint8",
         "Reorder(uint8) uint8", "Gemm(uint8) float"});
}

TEST_F(QuantizeTest, PoolsWhatAProductReads) {
  Check(ConvLayer("a", "x") + PoolLayer("p", "x", "kernel_size: 3 stride: 1 pad: 1") +
            ConvLayer("b", "p") + TwoBottoms("Concat", "s", "a", "b"),
        {"Reorder(float) int8", "Conv(int8) float", "MaxPool(int8) int8", "Conv(int8) float",
         "Concat(float, float) float"});
}

// The range is that of the blob, which holds the result of Dropout.
TEST_F(QuantizeTest, LooksThroughDropoutInPlace) {
  Check(ConvLayer("a", "x") + LayerOn("ReLU", "a") +
            PoolLayer("p", "a", "pool: AVE global_pooling: true") + LayerOn("Dropout", "p") +
            ProductLayer("ip", "p"),
        {"Reorder(float) int8", "Conv, relu(int8) uint8", "AvePool(uint8) uint8",
         "View(uint8) uint8", "Reorder(uint8) uint8", "Gemm(uint8) float"});
}

TEST_F(QuantizeTest, TakesLimitsIn) {
  Check(ConvLayer("a", "x") + LayerOn("ReLU6", "a") + ConvLayer("b", "a"),
        {"Reorder(float) int8", "Conv, clip 0 to 6(int8) uint8", "Conv(uint8) float"});
}

TEST_F(QuantizeTest, ALayersOwnPrecisionCounts) {
  const std::string tail = LayerOn("ReLU", "a");
  Check(ConvLayer("a", "x") + tail + ConvLayer("b", "a", "precision: FP32") + ConvLayer("c", "b"),
        {"Reorder(float) int8", "Conv, relu(int8) float", "Conv(float) float", "Cast(float) int8",
         "Conv(int8) float"});
  const std::string one = ConvLayer("a", "x", "precision: INT8") + tail + ConvLayer("b", "a");
  NetParameter param = testing::ParseNet(kImage + one);
  param.mutable_state()->set_phase(TEST);
  param.set_calibration(folder_.path("q.json"));
  const Net net(param, {.keep_all = false, .with_backward = false});
  EXPECT_THAT(Steps(net), ElementsAreArray({"Reorder(float) int8", "Conv, relu(int8) float",
                                            "Conv(float) float"}));
}

// The second factor is signed even if nothing in it is negative.
TEST_F(QuantizeTest, MultipliesTwoBlobs) {
  Check(ConvLayer("a", "x") + LayerOn("ReLU", "a") + ConvLayer("b", "x") + LayerOn("ReLU", "b") +
            MatMulLayer("y", "a", "b", "transpose_b: true"),
        {"Reorder(float) int8", "Conv, relu(int8) uint8", "Conv, relu(int8) int8",
         "Reorder(uint8) uint8", "Reorder(int8) int8", "BatchedGemm(uint8, int8) float"});
}

TEST_F(QuantizeTest, MultipliesInAttention) {
  Check(testing::AttentionLayers(),
        {"Reorder(float) int8", "Conv(int8) int8", "Conv(int8) int8", "Conv(int8) int8",
         "Reorder(int8) int8", "Reorder(int8) int8", "BatchedGemm(int8, int8) float",
         "Softmax(float) float", "Cast(float) uint8", "Reorder(int8) int8",
         "BatchedGemm(uint8, int8) float"});
}

// A product of two blobs may be of one pair of matrices, and its result may stay in 8 bits.
TEST_F(QuantizeTest, MultipliesProductsAgain) {
  const std::string rows =
      "layer { name: 'r' type: 'Reshape' bottom: 'x' top: 'r' reshape_param { shape { dim: 64 dim: "
      "7 } } } ";
  Check(rows + MatMulLayer("s", "r", "r", "transpose_b: true") + MatMulLayer("y", "s", "r"),
        {"View(float) float", "Cast(float) int8", "BatchedGemm(int8, int8) int8",
         "BatchedGemm(int8, int8) float"});
}

TEST_F(QuantizeTest, WeightsOfAParameterHaveAScaleForEachColumn) {
  const std::string layers = ParameterLayer("w", "dim: 7 dim: 5") + MatMulLayer("y", "x", "w");
  Check(layers + LayerOn("ReLU", "y"), {"Cast(float) int8", "Gemm, relu(int8) float"});
  // One large column would leave few steps for the others.
  Calibrate(layers);
  double errors[2];
  for (const Precision precision : {FP32, INT8}) {
    const auto net = Make(layers, precision, false);
    Blob& w = *net->layer_params("w")[0];
    for (int64_t i = 0; i < 7; ++i) w.mutable_cpu_data()[i * 5] *= 1e4F;
    const std::vector<float> y = testing::Output(*net);
    errors[precision == INT8] = static_cast<double>(y[1]);
  }
  EXPECT_NEAR(errors[0], errors[1], 0.05);
  EXPECT_NE(errors[0], errors[1]);
}

// The product is of a matrix, and what is added has three axes.
TEST_F(QuantizeTest, AddsRowsOfSeveralAxes) {
  const auto rows = [](const std::string& name, const std::string& bottom) {
    return StrCat(
        "layer { name: '", name, "' type: 'InnerProduct' bottom: '", bottom, "' top: '", name,
        "' inner_product_param { num_output: 7 axis: 2 weight_filler { type: 'xavier' } } "
        "} ");
  };
  Check(
      "layer { name: 'r' type: 'Reshape' bottom: 'x' top: 'r' reshape_param { shape { dim: 4 "
      "dim: 16 dim: 7 } } } " +
          rows("a", "r") + rows("b", "a") + TwoBottoms("Eltwise", "s", "a", "b") + rows("c", "s"),
      {"View(float) float", "Cast(float) int8", "Gemm(int8) int8", "Gemm, add(int8, int8) int8",
       "Gemm(int8) float"});
}

TEST_F(QuantizeTest, PermutesNumbers) {
  const std::string permuted =
      "' type: 'Permute' bottom: 'a' top: 'b' permute_param { order: 0 "
      "order: 2 order: 1 order: 3 } } ";
  Check(ConvLayer("a", "x") + "layer { name: 'b" + permuted +
            MatMulLayer("y", "b", "b", "transpose_b: true"),
        {"Reorder(float) int8", "Conv(int8) int8", "Reorder(int8) int8", "Permute(int8) int8",
         "BatchedGemm(int8, int8) float"});
}

// A value that is stored in 8 bits reaches a layer of another type in that type: a concatenation or
// a view would misinterpret the bytes of floats.
TEST_F(QuantizeTest, LayersOfOtherTypesReadWhatIsStored) {
  for (const char* type : {"FP64", "FP16", "BF16"}) {
    const std::string precision = StrCat("precision: ", type, ' ');
    const std::string stored = ConvLayer("a", "x") + LayerOn("ReLU", "a") + ConvLayer("b", "a");
    const auto one = [&](const std::string& kind, const std::string& options = "") {
      return StrCat("layer { name: 'z' type: '", kind, "' bottom: 'a' top: 'z' ", precision,
                    options, " } ");
    };
    for (const std::string& reader :
         {StrCat("layer { name: 'z' type: 'Concat' bottom: 'a' bottom: 'a' top: 'z' ", precision,
                 "} "),
          one("Pooling", "pooling_param { pool: AVE kernel_size: 2 }"), one("Flatten"),
          one("Convolution",
              "convolution_param { num_output: 3 kernel_size: 1 weight_filler { "
              "type: 'msra' } }")}) {
      const std::string layers =
          stored + reader + "layer { name: 'b_' type: 'Silence' bottom: 'b' } ";
      Calibrate(layers);
      EXPECT_LT(Error(layers, /*keep_all=*/false), 0.05) << type << ", " << reader;
    }
  }
}

std::string NoteOf(const Net& net, const std::string& layer) {
  for (const PlanStep& step : PlanSteps(net)) {
    if (step.layers.starts_with(layer) && !step.precision_note.empty()) return step.precision_note;
  }
  return "";
}

TEST_F(QuantizeTest, SaysWhyALayerStaysFloat) {
  const std::string layers = ConvLayer("a", "x") + ConvLayer("b", "a") +
                             "layer { name: 'p' type: 'Softmax' bottom: 'b' top: 'p' } ";
  Calibrate(layers, /*without=*/"a");
  const auto net = Make(layers, INT8, false);
  EXPECT_EQ(NoteOf(*net, "a"), "");
  EXPECT_EQ(NoteOf(*net, "b"),
            StrCat("float instead of int8: blob 'a' has no range in ", folder_.path("q.json")));
  EXPECT_EQ(NoteOf(*net, "p"),
            "float instead of int8: there is no kernel for Softmax of 8-bit numbers on cpu");
}

// More numbers than a 32-bit sum can hold; planning such a large image needs no memory for it.
TEST_F(QuantizeTest, AnAverageOfMillionsStaysFloat) {
  for (const auto& [edge, is_8_bit] : {std::pair{2901, true}, {2903, false}}) {
    NetParameter param = testing::ParseNet(
        StrCat("name: 'q' layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 1 "
               "dim: 8 dim: ",
               edge, " dim: ", edge, " } } } ", ConvLayer("a", "x"), LayerOn("ReLU", "a"),
               PoolLayer("p", "a", "pool: AVE global_pooling: true"), ProductLayer("ip", "p")));
    param.mutable_state()->set_phase(TEST);
    testing::WriteRanges("q", {{"x", {-1, 1}}, {"a", {0, 1}}, {"p", {0, 1}}},
                         folder_.path("q.json"));
    const Net net(param, {.keep_all = false,
                          .with_backward = false,
                          .precision = INT8,
                          .calibration = folder_.path("q.json"),
                          .allocate = false});
    EXPECT_EQ(NoteOf(net, "p").empty(), is_8_bit) << NoteOf(net, "p");
    if (!is_8_bit) {
      EXPECT_EQ(NoteOf(net, "p"),
                "float instead of int8: its sums of 8427409 numbers do not fit 32 bits, which hold "
                "8421504");
    }
  }
}

// Runs on each processor.
class QuantizeErrorTest : public QuantizeTest {
 protected:
  void SetUp() override {}
};

TEST_F(QuantizeErrorTest, ALayerThatAsksByItselfNeedsARange) {
  Calibrate(ConvLayer("a", "x") + ConvLayer("b", "a"), /*without=*/"a");
  const std::string layers = ConvLayer("a", "x") + ConvLayer("b", "a", "precision: INT8");
  const std::string text = ErrorText<InvalidArgument>([&] { Make(layers, INT8, false); });
  EXPECT_THAT(text, HasSubstr("layer 'b' (Convolution): has precision INT8, but blob 'a' has no "
                              "range in "));
  EXPECT_THAT(text, HasSubstr("run caffe calibrate on this net, or leave out"));
}

TEST_F(QuantizeErrorTest, AFileWithoutAnyRangeIsAnError) {
  const std::string layers = ConvLayer("a", "x");
  Calibrate(layers, /*without=*/"x");
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { Make(layers, INT8, false); }),
              HasSubstr("has the ranges of 1 blob of net 'q', but none of 'x'"));
}

TEST_F(QuantizeErrorTest, ABlobThatIsOverwrittenBehindItsReaderIsSaidToBe) {
  const std::string layers = ConvLayer("a", "x") + LayerOn("ReLU", "x");
  Calibrate(layers);
  const std::string why = StrCat(
      "blob 'x' is overwritten in place by layer 'x_ReLU' (ReLU), so that ", folder_.path("q.json"),
      " has the range of what that layer makes alone; give its top another name");
  EXPECT_EQ(ErrorText<InvalidArgument>([&] { Make(layers, INT8, false); }),
            StrCat(folder_.path("q.json"), ": has no range for any layer of precision INT8: ", why,
                   ", and run caffe calibrate on the changed net"));
  const std::string asking = ConvLayer("a", "x", "precision: INT8") + LayerOn("ReLU", "x");
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { Make(asking, INT8, false); }),
              HasSubstr(StrCat("layer 'a' (Convolution): has precision INT8, but ", why)));
  // Another layer has a range, and the one without a range says why.
  const auto net = Make(layers + ConvLayer("b", "x"), INT8, false);
  EXPECT_EQ(NoteOf(*net, "a"), StrCat("float instead of int8: ", why));
}

// The blob's only range is that of the in-place layer's result, which the product reads.
TEST_F(QuantizeTest, AnInputThatIsOverwrittenInPlaceHasItsLastRange) {
  const std::string layers = LayerOn("ReLU", "x") + ConvLayer("a", "x");
  Calibrate(layers);
  for (const bool keep_all : {false, true}) {
    const auto net = Make(layers, INT8, keep_all);
    EXPECT_EQ(NoteOf(*net, "a"), "") << keep_all;
    EXPECT_LT(Error(layers, keep_all), 0.05);
    EXPECT_GT(Error(layers, keep_all), 0);
  }
}

TEST_F(QuantizeTest, WeightsMayChange) {
  const std::string layers = ConvLayer("a", "x");
  Calibrate(layers);
  const auto net = Make(layers, INT8, false);
  const std::vector<float> before = testing::Output(*net);
  float* weights = net->layer_params(1)[0]->mutable_cpu_data();
  for (int64_t i = 0; i < net->layer_params(1)[0]->count(); ++i) weights[i] *= 3;
  net->layer_params(1)[1]->mutable_cpu_data()[0] = 2;
  const std::vector<float> after = testing::Output(*net);
  // Channel 1: its bias has not changed.
  const auto bias = static_cast<double>(net->layer_params(1)[1]->cpu_data()[1]);
  for (size_t i = 56; i < 112; ++i) {
    const double product = static_cast<double>(before[i]) - bias;
    EXPECT_NEAR(static_cast<double>(after[i]) - bias, 3 * product, 1e-4);
  }
}

}  // namespace
}  // namespace caffe
