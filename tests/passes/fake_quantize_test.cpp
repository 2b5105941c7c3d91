// Nets of precision FAKE_INT8: tests which values are rounded, that the numbers are those of a plan
// in 8 bits, and the gradients.
#include "caffe/ops/fake_quantize.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "caffe/graph/graph.hpp"
#include "caffe/net.hpp"
#include "caffe/ops/conv.hpp"
#include "tests/support/blob_ranges.hpp"
#include "tests/support/blob_values.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"
#include "tests/support/quantised_nets.hpp"
#include "tests/support/temporary_folder.hpp"

// A separate namespace, because other files have functions with these names.
namespace caffe::fake_quantize {
namespace {

using testing::ConvLayer;
using ::testing::ElementsAreArray;
using testing::ErrorText;
using testing::HasInt8;
using ::testing::HasSubstr;
using testing::kImage;
using testing::LayerOn;
using testing::PoolLayer;
using testing::ProductLayer;
using testing::TwoBottoms;

constexpr const char* kSoftmaxLoss =
    "layer { name: 'label' type: 'Input' top: 'label' input_param { shape { dim: 2 } } } "
    "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' } ";

std::string ResidualBlock() {
  return ConvLayer("a", "x") + LayerOn("BatchNorm", "a") + LayerOn("Scale", "a") +
         LayerOn("ReLU", "a") + ConvLayer("b", "a") + LayerOn("BatchNorm", "b") +
         LayerOn("Scale", "b") + TwoBottoms("Eltwise", "s", "a", "b") + LayerOn("ReLU", "s") +
         PoolLayer("p", "s", "pool: AVE global_pooling: true") + ProductLayer("ip", "p");
}

class FakeQuantizeTest : public ::testing::Test {
 protected:
  std::unique_ptr<Net> Make(const std::string& layers, Precision precision, bool keep_all = false,
                            Phase phase = TEST) const {
    NetParameter param = testing::ParseNet(kImage + layers + (phase == TRAIN ? kSoftmaxLoss : ""));
    param.mutable_state()->set_phase(phase);
    auto net = std::make_unique<Net>(
        param, NetOptions{.keep_all = keep_all,
                          .with_backward = phase == TRAIN,
                          .seed = 7,
                          .precision = precision,
                          .calibration = precision == FP32 ? "" : folder_.path("q.json")});
    for (size_t i = 0; i < net->layers().size(); ++i) {
      if (net->layers()[i]->type() != std::string("BatchNorm")) continue;
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

  // Stores the ranges of the float net's values; the range of `narrow` is almost empty.
  void Calibrate(const std::string& layers, const std::string& narrow = "",
                 const std::string& without = "") const {
    const auto net = Make(layers, FP32, /*keep_all=*/true);
    net->Forward();
    testing::Ranges ranges = testing::RangesOf(*net);
    ranges.erase(without);
    for (auto& [blob, range] : ranges) {
      if (blob == narrow) range = {1e-6F * range.first, 1e-6F * range.second};
    }
    testing::WriteRanges("q", ranges, folder_.path("q.json"));
  }

  // The name of a value, regardless of its layout and order.
  static std::string NameOf(const Value* value) {
    if (value == nullptr) return "-";
    std::string name = value->name;
    for (const std::string suffix : {" packed", ":channels-last", ":plain"}) {
      if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
    }
    return name;
  }

  // "a = Conv(x:fake_int8, a.0:fake_int8, a.1)" for each step that writes or reads rounded values.
  static std::vector<std::string> Steps(const Net& net) {
    std::vector<std::string> steps;
    for (const Node* node : net.graph().ScheduledNodes()) {
      if (node->op.name() == "PackWeights" || node->op.name() == "Reorder") continue;
      std::string text = StrCat(NameOf(node->outputs[0]), " = ", node->op.name(), "(");
      const char* separator = "";
      for (const Value* input : node->inputs) {
        text += StrCat(separator, NameOf(input));
        separator = ", ";
      }
      if (text.find("fake_int8") != text.npos) steps.push_back(text + ")");
    }
    return steps;
  }

  static double Difference(const std::vector<float>& want, const std::vector<float>& got) {
    double error = 0, largest = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      error = std::max(error, std::abs(static_cast<double>(want[i]) - got[i]));
      largest = std::max(largest, std::abs(static_cast<double>(want[i])));
    }
    return error / largest;
  }

  // The rounded net is as close to the plan in 8 bits as float rounding errors allow: if such an
  // error decides which number is nearest, a value differs by one step, so a few values may.
  void CheckAgreement(const std::string& layers) const {
    Calibrate(layers);
    const std::vector<float> exact = testing::Output(*Make(layers, FP32));
    const std::vector<float> rounded = testing::Output(*Make(layers, FAKE_INT8));
    EXPECT_EQ(rounded, testing::Output(*Make(layers, FAKE_INT8, /*keep_all=*/true)));
    const double from_float = Difference(exact, rounded);
    EXPECT_GT(from_float, 0);
    EXPECT_LT(from_float, 0.05);
    if (!HasInt8()) return;
    const double from_int8 = Difference(testing::Output(*Make(layers, INT8)), rounded);
    EXPECT_LT(from_int8, 0.002) << "and " << from_float << " from the float net";
  }

  std::vector<float> Gradient(const std::string& layers, Precision precision,
                              const std::string& layer) const {
    const auto net = Make(layers, precision, /*keep_all=*/false, TRAIN);
    net->blob_by_name("label")->mutable_cpu_data()[1] = 3;
    net->ForwardBackward();
    const Blob& weights = *net->layer_params(layer)[0];
    return {weights.cpu_diff(), weights.cpu_diff() + weights.count()};
  }

  testing::TemporaryFolder folder_;
};

TEST_F(FakeQuantizeTest, RoundsWhatAPlanIn8BitsStores) {
  const std::string layers = ConvLayer("a", "x") + LayerOn("ReLU", "a") +
                             PoolLayer("p", "a", "kernel_size: 2 stride: 2") +
                             ProductLayer("ip", "p");
  Calibrate(layers);
  EXPECT_THAT(
      Steps(*Make(layers, FAKE_INT8)),
      ElementsAreArray({"a.0:fake_int8 = FakeQuantizeRows(a.0)", "x:fake_int8 = FakeQuantize(x)",
                        "a = Conv(x:fake_int8, a.0:fake_int8, a.1)",
                        "ip.0:fake_int8 = FakeQuantizeRows(ip.0)", "p:fake_int8 = FakeQuantize(p)",
                        "ip = Gemm(p:fake_int8, ip.0:fake_int8, ip.1)"}));
}

// Tests which values are rounded and which ones backward reads.
TEST_F(FakeQuantizeTest, GradientsAreOfWhatWasRead) {
  const std::string layers = ConvLayer("a", "x") + ProductLayer("ip", "a");
  Calibrate(layers);
  const std::vector<std::string> steps = Steps(*Make(layers, FAKE_INT8, false, TRAIN));
  EXPECT_THAT(steps, ::testing::IsSupersetOf({"ip = Gemm(a:fake_int8, ip.0:fake_int8, ip.1)",
                                              "a:fake_int8.diff = Gemm(ip.diff, ip.0:fake_int8)",
                                              "a.diff = FakeQuantizeGrad(a, a:fake_int8.diff)"}));
}

TEST_F(FakeQuantizeTest, AgreesWithChains) {
  CheckAgreement(ConvLayer("a", "x") + LayerOn("ReLU", "a") +
                 PoolLayer("p", "a", "kernel_size: 2 stride: 2") + ConvLayer("b", "p") +
                 LayerOn("ReLU", "b") + ProductLayer("ip", "b"));
}

TEST_F(FakeQuantizeTest, AgreesWithNormalisationsAndResiduals) {
  CheckAgreement(ResidualBlock());
}

TEST_F(FakeQuantizeTest, AgreesWithProjections) {
  CheckAgreement(ConvLayer("a", "x") + LayerOn("ReLU", "a") + ConvLayer("b", "a") +
                 LayerOn("BatchNorm", "b") + LayerOn("Scale", "b") + ConvLayer("c", "a") +
                 LayerOn("BatchNorm", "c") + LayerOn("Scale", "c") +
                 TwoBottoms("Eltwise", "s", "b", "c") + LayerOn("ReLU", "s") + ConvLayer("d", "s"));
}

TEST_F(FakeQuantizeTest, AgreesWithSumsOfThree) {
  CheckAgreement(
      ConvLayer("a", "x") + ConvLayer("b", "x") +
      "layer { name: 's' type: 'Eltwise' bottom: 'a' bottom: 'b' bottom: 'a' top: 's' } " +
      ConvLayer("c", "s"));
}

TEST_F(FakeQuantizeTest, AgreesWithConcatenations) {
  CheckAgreement(ConvLayer("a", "x") + LayerOn("ReLU", "a") + ConvLayer("b", "x") +
                 TwoBottoms("Concat", "s", "a", "b") + ConvLayer("c", "s"));
}

TEST_F(FakeQuantizeTest, AgreesWithLimitsAndDropout) {
  CheckAgreement(ConvLayer("a", "x") + LayerOn("ReLU6", "a") +
                 PoolLayer("p", "a", "pool: AVE global_pooling: true") + LayerOn("Dropout", "p") +
                 ProductLayer("ip", "p"));
}

TEST_F(FakeQuantizeTest, AgreesAroundLayersInFloat) {
  CheckAgreement(ConvLayer("a", "x") + LayerOn("Sigmoid", "a") +
                 ConvLayer("b", "a", "precision: FP32") + LayerOn("ReLU", "b") +
                 ConvLayer("c", "b"));
}

TEST_F(FakeQuantizeTest, AgreesWithProductsOfBlobs) {
  CheckAgreement(testing::AttentionLayers());
  CheckAgreement(ConvLayer("a", "x") + LayerOn("ReLU", "a") + ConvLayer("b", "x") +
                 LayerOn("ReLU", "b") + testing::MatMulLayer("y", "a", "b", "transpose_b: true"));
}

// The gradients of both factors are cut off where they are clipped, and those of a parameter are
// not.
TEST_F(FakeQuantizeTest, ProductsOfBlobsReadRoundedFactors) {
  const std::string layers = ConvLayer("a", "x") +
                             testing::MatMulLayer("s", "a", "a", "transpose_b: true") +
                             testing::ParameterLayer("w", "dim: 8 dim: 3") +
                             testing::MatMulLayer("t", "s", "w") + ProductLayer("ip", "t");
  Calibrate(layers);
  EXPECT_THAT(Steps(*Make(layers, FAKE_INT8, false, TRAIN)),
              ::testing::IsSupersetOf({"s = BatchedGemm(a:fake_int8, a:fake_int8)",
                                       "w:fake_int8 = FakeQuantizeRows(w)",
                                       "t = Gemm(s:fake_int8, w:fake_int8)",
                                       "w.diff = FakeQuantizeGrad(w, w:fake_int8.diff)"}));
}

// After multiplying by 2, its numbers would be beyond the range.
TEST_F(FakeQuantizeTest, RoundsBeforeDropout) {
  const std::string layers = ConvLayer("a", "x") + LayerOn("ReLU", "a") + LayerOn("Dropout", "a") +
                             ProductLayer("ip", "a");
  Calibrate(layers);
  EXPECT_THAT(
      Steps(*Make(layers, FAKE_INT8, false, TRAIN)),
      ::testing::IsSupersetOf({"a:fake_int8 = FakeQuantize(a)", "a = Dropout(a:fake_int8)"}));
}

TEST_F(FakeQuantizeTest, ALayersOwnPrecisionCounts) {
  const std::string one = ConvLayer("a", "x", "precision: FAKE_INT8") + ConvLayer("b", "a");
  Calibrate(ConvLayer("a", "x") + ConvLayer("b", "a"));
  NetParameter param = testing::ParseNet(kImage + one);
  param.set_calibration(folder_.path("q.json"));
  EXPECT_THAT(Steps(Net(param)), ElementsAreArray({"a.0:fake_int8 = FakeQuantizeRows(a.0)",
                                                   "x:fake_int8 = FakeQuantize(x)",
                                                   "a = Conv(x:fake_int8, a.0:fake_int8, a.1)"}));
  // A definition that sets 8 bits itself is trained for 8 bits.
  const std::string own = ConvLayer("a", "x", "precision: INT8") + ProductLayer("ip", "a");
  EXPECT_EQ(Steps(*Make(own, FAKE_INT8, false, TRAIN)).front(),
            "a.0:fake_int8 = FakeQuantizeRows(a.0)");
}

TEST_F(FakeQuantizeTest, GradientsGoStraightThrough) {
  const std::string layers = ResidualBlock();
  Calibrate(layers);
  for (const char* layer : {"a", "b", "ip"}) {
    const std::vector<float> exact = Gradient(layers, FP32, layer),
                             rounded = Gradient(layers, FAKE_INT8, layer);
    double dot = 0, squares = 0, others = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
      dot += static_cast<double>(exact[i]) * rounded[i];
      squares += static_cast<double>(exact[i]) * exact[i];
      others += static_cast<double>(rounded[i]) * rounded[i];
    }
    EXPECT_GT(dot / std::sqrt(squares * others), 0.99) << layer;
    EXPECT_NEAR(others / squares, 1, 0.1) << layer;
  }
}

TEST_F(FakeQuantizeTest, NoGradientPassesALimit) {
  const std::string layers = ConvLayer("a", "x") + LayerOn("ReLU", "a") + ProductLayer("ip", "a");
  Calibrate(layers, /*narrow=*/"a");
  for (const float diff : Gradient(layers, FAKE_INT8, "a")) {
    // ReLU's zeros are within the range, and have no gradient either.
    EXPECT_EQ(diff, 0);
  }
  Calibrate(layers);
  const std::vector<float> inside = Gradient(layers, FAKE_INT8, "a");
  EXPECT_TRUE(std::ranges::any_of(inside, [](float diff) { return diff != 0; }));
}

// Compares with differences of the function that has this gradient: x limited to the range.
TEST_F(FakeQuantizeTest, TheGradientIsThatOfALimit) {
  const ops::QuantizedRange range{0.25, 0, 255};
  const ops::FakeQuantizeGrad gradient(range);
  const ops::FakeQuantize forward(range);
  const auto limited = [](double x) { return std::clamp(x, 0.0, 0.25 * 255); };
  for (double x = -10.03; x < 80; x += 0.17) {
    if (std::abs(x) < 0.2 || std::abs(x - 63.75) < 0.2) continue;  // kinks
    const double difference = (limited(x + 1e-4) - limited(x - 1e-4)) / 2e-4;
    EXPECT_NEAR(gradient.Apply(x, 3.0), 3 * difference, 1e-6) << x;
    EXPECT_NEAR(forward.Apply(x), limited(x), 0.1251) << x;
  }
  EXPECT_TRUE(std::isnan(forward.Apply(NAN)));
}

TEST_F(FakeQuantizeTest, SaysWhatIsMissing) {
  const std::string layers = ConvLayer("a", "x") + ConvLayer("b", "a", "precision: FAKE_INT8");
  Calibrate(ConvLayer("a", "x") + ConvLayer("b", "a"), "", /*without=*/"a");
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { Make(layers, FAKE_INT8); }),
              HasSubstr("layer 'b' (Convolution): has precision FAKE_INT8, but blob 'a' has no "
                        "range in "));
  Calibrate(ConvLayer("a", "x"), "", /*without=*/"x");
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { Make(ConvLayer("a", "x"), FAKE_INT8); }),
              HasSubstr("has the ranges of 1 blob of net 'q', but none of 'x'"));
  NetParameter param = testing::ParseNet(kImage + ConvLayer("a", "x"));
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { Net(param, {.precision = FAKE_INT8}); }),
              HasSubstr("it has precision FAKE_INT8, which needs the ranges"));
}

TEST_F(FakeQuantizeTest, ABlobThatIsOverwrittenBehindItsReaderIsSaidToBe) {
  const std::string layers = ConvLayer("a", "x") + LayerOn("ReLU", "x");
  Calibrate(layers);
  EXPECT_THAT(
      ErrorText<InvalidArgument>([&] { Make(layers, FAKE_INT8); }),
      HasSubstr("has no range for any layer of precision FAKE_INT8: blob 'x' is overwritten "
                "in place by layer 'x_ReLU' (ReLU), so that "));
}

}  // namespace
}  // namespace caffe::fake_quantize
