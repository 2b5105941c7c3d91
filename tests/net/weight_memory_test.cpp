// Nets for inference hold their weights once, in the type and order that steps read, and still give
// everybody who asks for the weights their exact values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "caffe/blob.hpp"
#include "caffe/net.hpp"
#include "caffe/net/training_net.hpp"
#include "caffe/plan_report.hpp"
#include "caffe/tensor/synced_tensor.hpp"
#include "tests/support/blob_ranges.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"
#include "tests/support/quantised_nets.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

constexpr char kTwoWeightsNet[] = R"(
    name: 'net' state { phase: TEST }
    layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 16 dim: 9 dim: 9 } } }
    layer { name: 'conv' type: 'Convolution' bottom: 'x' top: 'conv'
            convolution_param { num_output: 32 kernel_size: 3 weight_filler { type: 'xavier' } } }
    layer { name: 'relu' type: 'ReLU' bottom: 'conv' top: 'conv' }
    layer { name: 'ip' type: 'InnerProduct' bottom: 'conv' top: 'y'
            inner_product_param { num_output: 320 weight_filler { type: 'gaussian' std: 0.1 } } })";
constexpr int64_t kConvWeights = 32 * 16 * 9, kProductWeights = 320 * 32 * 49,
                  kNumBiases = 32 + 320;

using Values = std::vector<float>;

class WeightMemoryTest : public ::testing::Test {
 protected:
  WeightMemoryTest() {
    for (const uint64_t seed : {1, 2}) {
      Net net(testing::ParseNet(kTwoWeightsNet), {.seed = seed, .keep_weights = true});
      net.Save(FileOf(seed));
    }
    Net net(testing::ParseNet(kTwoWeightsNet), {.seed = 1});
    Run(net);
    testing::WriteRanges("net", testing::RangesOf(net), folder_ / "ranges.json");
  }

  std::string FileOf(uint64_t seed) const {
    return folder_.path(StrCat("net", seed, ".caffemodel"));
  }
  NetOptions Options(Precision precision, bool keep_weights = false) const {
    return {.keep_all = false,
            .with_backward = false,
            .seed = 3,
            .precision = precision,
            .calibration = precision == INT8 ? folder_.path("ranges.json") : "",
            .keep_weights = keep_weights};
  }
  std::unique_ptr<Net> Make(const NetOptions& options, uint64_t seed = 1) const {
    auto net = std::make_unique<Net>(testing::ParseNet(kTwoWeightsNet), options);
    net->CopyTrainedLayersFrom(FileOf(seed));
    return net;
  }
  static Values Run(Net& net) {
    Blob& input = *net.input_blobs()[0];
    std::iota(input.mutable_cpu_data<float>(), input.mutable_cpu_data<float>() + input.count(),
              -20.0F);
    const Blob& output = *net.Forward()[0];
    return {output.cpu_data<float>(), output.cpu_data<float>() + output.count()};
  }
  static Values Weights(const Net& net, const std::string& layer) {
    const Blob& blob = *net.layer_params(layer)[0];
    return {blob.cpu_data<float>(), blob.cpu_data<float>() + blob.count()};
  }
  // Overwrites a file in place, so that it cannot be read any more.
  void Spoil(uint64_t seed) const {
    std::ofstream(FileOf(seed), std::ios::app | std::ios::binary) << "more";
  }
  // The addresses of the copies of a layer's weights that steps read.
  static std::vector<const void*> CopiesOf(Net& net, const std::string& layer) {
    Executor& executor = TrainingNet(net).executor();
    const Program& program = executor.program();
    std::vector<const void*> places;
    for (size_t i = 0; i < program.copies.size(); ++i) {
      if (program.copies[i].is_read && program.steps[i].layer_name == layer)
        places.push_back(executor.bindings()[program.copies[i].results[0]]->data());
    }
    return places;
  }

  testing::TemporaryFolder folder_;
};

TEST_F(WeightMemoryTest, WeightsExistOnce) {
  for (const auto& [precision, bytes] : {std::pair(FP32, 4), {BF16, 2}, {FP16, 2}}) {
    const auto net = Make(Options(precision));
    EXPECT_LE(net->weight_bytes(), kNumBiases * 4) << bytes;
    Run(*net);
    const int64_t least = bytes * kProductWeights + 4 * kNumBiases;
    // A kernel may read the filters in an expanded form: Winograd's has 36 numbers for 9.
    EXPECT_GT(net->weight_bytes(), least) << bytes;
    EXPECT_LE(net->weight_bytes(), least + 4 * bytes * kConvWeights) << bytes;
    const PlanMemory plan = MemoryOfPlan(*net);
    EXPECT_EQ(net->weight_bytes(), plan.parameters + plan.states) << bytes;
    Run(*net);
    EXPECT_LE(net->weight_bytes(), least + 4 * bytes * kConvWeights) << bytes;
  }
}

// Weights that are only in their file are read from it, written, and not kept.
TEST_F(WeightMemoryTest, SavingThemTakesNoMemoryAfterwards) {
  for (const Precision precision : {FP32, BF16, FP16}) {
    const auto net = Make(Options(precision));
    Run(*net);
    const int64_t before = net->weight_bytes();
    net->Save(folder_.path("again.caffemodel"));
    net->ToHDF5(folder_.path("again.h5"));
    EXPECT_EQ(net->weight_bytes(), before) << precision;
    for (const char* file : {"again.caffemodel", "again.h5"}) {
      Net again(testing::ParseNet(kTwoWeightsNet), {.seed = 3, .keep_weights = true});
      again.CopyTrainedLayersFrom(folder_.path(file));
      for (const char* layer : {"conv", "ip"})
        EXPECT_EQ(Weights(again, layer), Weights(*Make(Options(FP32)), layer)) << file << layer;
    }
  }
}

TEST_F(WeightMemoryTest, EightBitsAreAQuarter) {
  if (!testing::HasInt8()) GTEST_SKIP() << "this processor has no int8 plans";
  const auto net = Make(Options(INT8));
  Run(*net);
  // With AMX, oneDNN rounds the length of rows up to 64: 1568 to 1600.
  constexpr int64_t kRounded = kProductWeights / 1568 * 1600;
  constexpr int64_t kScales = 4 * kNumBiases, kRounding = 4096;
  EXPECT_LE(net->weight_bytes(), kConvWeights + kRounded + kScales + 4 * kNumBiases + kRounding);
}

TEST_F(WeightMemoryTest, ResultsAreThoseOfNetsThatKeepThem) {
  for (const Precision precision : {FP32, BF16, FP16, INT8}) {
    if (precision == INT8 && !testing::HasInt8()) continue;
    const auto net = Make(Options(precision)), keeping = Make(Options(precision, true));
    EXPECT_EQ(Run(*net), Run(*keeping)) << precision;
    EXPECT_GT(keeping->weight_bytes(), 4 * (kConvWeights + kProductWeights)) << precision;
  }
}

TEST_F(WeightMemoryTest, ReadersGetTheExactValues) {
  for (const Precision precision : {FP32, BF16, FP16, INT8}) {
    if (precision == INT8 && !testing::HasInt8()) continue;
    const auto net = Make(Options(precision)), keeping = Make(Options(FP32, true));
    const Values before = Run(*net);
    EXPECT_EQ(Weights(*net, "ip"), Weights(*keeping, "ip")) << precision;
    EXPECT_EQ(Weights(*net, "conv"), Weights(*keeping, "conv")) << precision;
    EXPECT_EQ(Run(*net), before) << precision;
  }
}

TEST_F(WeightMemoryTest, PointersStayValid) {
  const auto net = Make(Options(BF16));
  const Values expected = Weights(*Make(Options(FP32, true)), "ip");
  const float* const early = net->layer_params("ip")[0]->cpu_data<float>();
  const std::shared_ptr<float> held = net->layer_params("conv")[0]->hold_cpu_data<float>();
  Run(*net);
  EXPECT_EQ(net->layer_params("ip")[0]->cpu_data<float>(), early);
  EXPECT_EQ(Values(early, early + kProductWeights), expected);
  EXPECT_EQ(net->layer_params("conv")[0]->cpu_data<float>(), held.get());
  EXPECT_GT(net->weight_bytes(), 4 * (kConvWeights + kProductWeights));
}

TEST_F(WeightMemoryTest, WritesReachTheNextRun) {
  for (const bool after_run : {false, true}) {
    const auto net = Make(Options(BF16)), keeping = Make(Options(BF16, true));
    if (after_run) Run(*net);
    for (Net* one : {net.get(), keeping.get()}) {
      for (const char* layer : {"conv", "ip"}) {
        float* const weights = one->layer_params(layer)[0]->mutable_cpu_data<float>();
        for (int i = 0; i < 100; ++i) weights[i] *= 3;
      }
    }
    EXPECT_EQ(Run(*net), Run(*keeping));
    EXPECT_EQ(Weights(*net, "ip"), Weights(*keeping, "ip"));
  }
}

TEST_F(WeightMemoryTest, WeightsMayBeCopiedAgain) {
  for (const Precision precision : {FP32, BF16}) {
    const auto net = Make(Options(precision));
    Run(*net);
    net->CopyTrainedLayersFrom(FileOf(2));
    const auto second = Make(Options(precision, true), 2);
    EXPECT_EQ(Run(*net), Run(*second));
    EXPECT_EQ(Weights(*net, "conv"), Weights(*second, "conv"));
    NetParameter first;
    Make(Options(FP32), 1)->ToProto(&first);
    net->CopyTrainedLayersFrom(first);
    EXPECT_EQ(Run(*net), Run(*Make(Options(precision), 1)));
  }
}

TEST_F(WeightMemoryTest, FillersGiveTheSameValuesAgain) {
  Net net(testing::ParseNet(kTwoWeightsNet), Options(BF16));
  EXPECT_EQ(net.weight_bytes(), 0);
  const Values result = Run(net);
  EXPECT_LT(net.weight_bytes(), 3 * (kConvWeights + kProductWeights));
  Net keeping(testing::ParseNet(kTwoWeightsNet), Options(BF16, true));
  EXPECT_EQ(result, Run(keeping));
  EXPECT_EQ(Weights(net, "conv"), Weights(keeping, "conv"));
  EXPECT_EQ(Weights(net, "ip"), Weights(keeping, "ip"));
}

// Another batch needs another plan, but the same casts.
TEST_F(WeightMemoryTest, AnotherBatchUsesTheSameCopies) {
  std::string text = kTwoWeightsNet;
  text.erase(text.find("layer { name: 'conv'"),
             text.find("layer { name: 'ip'") - text.find("layer { name: 'conv'"));
  text.replace(text.find("bottom: 'conv'"), 14, "bottom: 'x'");
  for (const Precision precision : {BF16, FP16}) {
    Net(testing::ParseNet(text), {.seed = 1}).Save(FileOf(4));
    Net net(testing::ParseNet(text), Options(precision));
    net.CopyTrainedLayersFrom(FileOf(4));
    Run(net);
    const std::vector<const void*> copies = CopiesOf(net, "ip");
    ASSERT_EQ(copies.size(), 1U);
    Spoil(4);  // a copy that was made again would be an error
    const int64_t bytes = net.weight_bytes();
    for (const int batch : {3, 1, 2, 3}) {
      net.input_blobs()[0]->Reshape(Shape{batch, 16, 9, 9});
      Run(net);
      EXPECT_EQ(CopiesOf(net, "ip"), copies) << precision;
      EXPECT_EQ(net.weight_bytes(), bytes) << precision;
    }
  }
}

TEST_F(WeightMemoryTest, NetsThatShareHoldThemOnce) {
  const auto net = Make(Options(BF16));
  const auto early = net->Share();
  const Values expected = Run(*net);
  const int64_t bytes = net->weight_bytes();
  EXPECT_LT(bytes, 3 * (kConvWeights + kProductWeights));
  Spoil(1);
  const auto other = net->Share();
  EXPECT_EQ(Run(*other), expected);
  EXPECT_EQ(Run(*early), expected);
  EXPECT_EQ(CopiesOf(*other, "ip"), CopiesOf(*net, "ip"));
  EXPECT_EQ(CopiesOf(*early, "ip"), CopiesOf(*net, "ip"));
}

TEST_F(WeightMemoryTest, NetsThatShareThemMayHaveOtherBatches) {
  const auto net = Make(Options(BF16));
  const Values expected = Run(*net);
  const int64_t bytes = net->weight_bytes();
  const auto other = net->Share();
  other->input_blobs()[0]->Reshape(Shape{4, 16, 9, 9});
  Run(*other);
  ASSERT_EQ(CopiesOf(*other, "ip").size(), 1U);
  EXPECT_EQ(CopiesOf(*other, "ip"), CopiesOf(*net, "ip"));
  EXPECT_EQ(net->weight_bytes(), bytes);
}

TEST_F(WeightMemoryTest, FilesHaveTheExactValues) {
  const auto net = Make(Options(BF16)), keeping = Make(Options(BF16, true));
  Run(*net);
  net->SaveProgram(folder_ / "net.cortado");
  keeping->SaveProgram(folder_ / "keeping.cortado");
  const auto text = [&](const std::string& name) {
    std::ifstream file(folder_ / name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_EQ(text("net.cortado"), text("keeping.cortado"));
  NetParameter saved, expected;
  net->ToProto(&saved);
  keeping->ToProto(&expected);
  EXPECT_EQ(saved.SerializeAsString(), expected.SerializeAsString());
  net->Save(FileOf(1));  // the file that it reads
  EXPECT_EQ(Run(*Make(Options(BF16))), Run(*keeping));
}

TEST_F(WeightMemoryTest, AnOverwrittenFileIsAnErrorOnlyForThoseWhoNeedIt) {
  const auto net = Make(Options(BF16)), keeping = Make(Options(BF16, true));
  const Values expected = Run(*net);
  Spoil(1);
  EXPECT_EQ(Run(*net), expected);
  EXPECT_EQ(Run(*keeping), expected);
  EXPECT_EQ(Weights(*keeping, "ip").size(), static_cast<size_t>(kProductWeights));
  EXPECT_THAT(testing::ErrorText<IoError>([&] { Weights(*net, "ip"); }),
              ::testing::HasSubstr("was changed while a net reads its weights from it"));
  net->CopyTrainedLayersFrom(FileOf(2));
  EXPECT_EQ(Run(*net), Run(*Make(Options(BF16, true), 2)));
}

// Weights that were widened as a whole would take twice the memory of the 16-bit ones.
TEST_F(WeightMemoryTest, ProductsInFloat16WidenPartsOfTheirWeights) {
  constexpr int64_t kInner = 12288, kOutputs = 401;
  const std::string text = R"(
      name: 'product' state { phase: TEST }
      layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 3 dim: 12288 } } }
      layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y' inner_product_param {
          num_output: 401 weight_filler { type: 'gaussian' std: 0.01 }
          bias_filler { type: 'uniform' min: -1 max: 1 } } })";
  Net net(testing::ParseNet(text), Options(FP16)), exact(testing::ParseNet(text), Options(FP32));
  for (Net* one : {&net, &exact}) {
    Blob& input = *one->input_blobs()[0];
    for (int64_t i = 0; i < input.count(); ++i)
      input.mutable_cpu_data<float>()[i] = static_cast<float>(i % 37) / 16 - 1;
  }
  const Blob &y = *net.Forward()[0], &expected = *exact.Forward()[0];
  for (int64_t i = 0; i < y.count(); ++i)
    ASSERT_NEAR(y.cpu_data<float>()[i], expected.cpu_data<float>()[i], 0.02) << i;
  const std::vector<PlanStep> steps = PlanSteps(net);
  EXPECT_TRUE(std::ranges::any_of(
      steps, [](const PlanStep& step) { return step.kernel == "gemm-by-columns"; }));
  EXPECT_LT(MemoryOfPlan(net).workspace, kInner * kOutputs * 4 / 2);
}

TEST_F(WeightMemoryTest, NetsThatTrainKeepThem) {
  std::string text = kTwoWeightsNet;
  text.replace(text.find("TEST"), 4, "TRAIN");
  Net net(testing::ParseNet(text), {.precision = BF16});
  net.CopyTrainedLayersFrom(FileOf(1));
  EXPECT_GE(net.weight_bytes(), 4 * (kConvWeights + kProductWeights));
  // A testing net that shares them must not free them.
  const auto test = std::make_unique<Net>(testing::ParseNet(kTwoWeightsNet), Options(BF16));
  test->ShareTrainedLayersWith(net);
  Run(*test);
  EXPECT_GE(net.weight_bytes(), 4 * (kConvWeights + kProductWeights));
  Spoil(1);
  EXPECT_EQ(Weights(net, "ip"), Weights(*test, "ip"));
}

}  // namespace
}  // namespace caffe
