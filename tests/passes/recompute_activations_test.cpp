// Plans that compute forward results again in backward, to stay within a limit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "caffe/error.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "caffe/net/training_net.hpp"
#include "caffe/plan_report.hpp"

namespace caffe {
namespace {

using ::testing::HasSubstr;

constexpr const char* kDeepInput =
    "layer { name: 'data' type: 'DummyData' top: 'x' top: 't' dummy_data_param { "
    "  shape { dim: 4 dim: 3 dim: 24 dim: 24 } shape { dim: 4 dim: 5 } "
    "  data_filler { type: 'gaussian' } data_filler { type: 'gaussian' } } } ";
constexpr const char* kDeepLoss =
    "layer { name: 'ip' type: 'InnerProduct' bottom: 'last' top: 'ip' "
    "  inner_product_param { num_output: 5 weight_filler { type: 'xavier' } } } "
    "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'ip' bottom: 't' top: 'loss' } ";

std::string Conv(const std::string& bottom, const std::string& top, int outputs) {
  return StrCat("layer { name: '", top, "' type: 'Convolution' bottom: '", bottom, "' top: '", top,
                "' convolution_param { num_output: ", outputs,
                " kernel_size: 3 pad: 1 weight_filler { type: 'msra' } } } ");
}
std::string NormOf(const std::string& blob) {
  return StrCat("layer { name: '", blob, "n' type: 'BatchNorm' bottom: '", blob, "' top: '", blob,
                "n' } layer { name: '", blob, "s' type: 'Scale' bottom: '", blob, "n' top: '", blob,
                "n' scale_param { bias_term: true } } layer { name: '", blob,
                "r' type: 'ReLU' bottom: '", blob, "n' top: '", blob, "n' } ");
}

std::string ConvWith(const std::string& bottom, const std::string& top,
                     const std::string& options) {
  return StrCat("layer { name: '", top, "' type: 'Convolution' bottom: '", bottom, "' top: '", top,
                "' convolution_param { ", options,
                " weight_filler { type: 'msra' } } } layer { name: '", top,
                "_relu' type: 'ReLU' bottom: '", top, "' top: '", top, "' } ");
}

// A block of MobileNet: its first two convolutions are one step if nobody reads the image between
// them.
std::string Depthwise(const std::string& bottom, const std::string& top) {
  return ConvWith(bottom, top + "_wide", "num_output: 48 kernel_size: 1") +
         ConvWith(top + "_wide", top + "_deep", "num_output: 48 group: 48 kernel_size: 3 pad: 1") +
         ConvWith(top + "_deep", top, "num_output: 8 kernel_size: 1");
}

// A block of SqueezeNet: its last two convolutions write into the concatenation if nobody reads
// their own results.
std::string Fire(const std::string& bottom, const std::string& top) {
  return ConvWith(bottom, top + "_s", "num_output: 16 kernel_size: 1") +
         ConvWith(top + "_s", top + "_a", "num_output: 16 kernel_size: 1") +
         ConvWith(top + "_s", top + "_b", "num_output: 48 kernel_size: 3 pad: 1") +
         StrCat("layer { name: '", top, "' type: 'Concat' bottom: '", top, "_a' bottom: '", top,
                "_b' top: '", top, "' } ");
}

struct DeepNet {
  std::string name, layers;
};

// Nets with parts to compute again: chains of convolutions and normalisations, a residual sum,
// masks and random numbers, branches, and convolutions that later passes join with others.
std::vector<DeepNet> DeepNets() {
  return {
      {"Chain", Conv("x", "a", 8) + NormOf("a") + Conv("an", "b", 8) + NormOf("b") +
                    Conv("bn", "c", 8) + NormOf("c") + Conv("cn", "last", 4)},
      {"Residual", Conv("x", "a", 8) + NormOf("a") + Conv("an", "b", 8) +
                       "layer { name: 'sum' type: 'Eltwise' bottom: 'b' bottom: 'a' top: 'sum' } " +
                       NormOf("sum") + Conv("sumn", "last", 4)},
      {"Dropout",
       Conv("x", "a", 8) +
           "layer { name: 'r' type: 'ReLU' bottom: 'a' top: 'a' } "
           "layer { name: 'p' type: 'Pooling' bottom: 'a' top: 'p' pooling_param { kernel_size: 3 "
           "stride: 1 pad: 1 } } "
           "layer { name: 'd' type: 'Dropout' bottom: 'p' top: 'p' } " +
           "layer { name: 'n' type: 'LRN' bottom: 'p' top: 'n' } " + Conv("n", "last", 4)},
      {"Branches", Conv("x", "a", 8) + "layer { name: 'ra' type: 'ReLU' bottom: 'a' top: 'a' } " +
                       Conv("a", "b", 8) + Conv("a", "c", 8) +
                       "layer { name: 'tb' type: 'TanH' bottom: 'b' top: 'b' } "
                       "layer { name: 'cat' type: 'Concat' bottom: 'b' bottom: 'c' top: 'cat' } "
                       "layer { name: 'sig' type: 'Sigmoid' bottom: 'cat' top: 'sig' } " +
                       Conv("sig", "last", 4)},
      {"Pairs", Depthwise("x", "a") + Depthwise("a", "b") +
                    "layer { name: 'sum' type: 'Eltwise' bottom: 'b' bottom: 'a' top: 'sum' } " +
                    Depthwise("sum", "last")},
      {"Fires", Fire("x", "a") + Fire("a", "b") + Conv("b", "last", 4)},
  };
}

std::unique_ptr<Net> MakeLimitedNet(const std::string& layers, Precision precision,
                                    int64_t memory_limit) {
  NetParameter param;
  ParseTextProto(kDeepInput + layers, "net", &param);
  param.mutable_state()->set_phase(TRAIN);
  return std::make_unique<Net>(
      param,
      NetOptions{
          .keep_all = false, .seed = 3, .precision = precision, .memory_limit = memory_limit});
}
std::unique_ptr<Net> MakeLimitedNet(const DeepNet& net, Precision precision, int64_t memory_limit) {
  return MakeLimitedNet(net.layers + kDeepLoss, precision, memory_limit);
}

int64_t SmallestPeak(Net& net) {
  int64_t smallest = MemoryOfPlan(net).total();
  for (const Plan& plan : TrainingNet(net).TradeOffs())
    smallest = std::min(smallest, MemoryOf(*plan.graph, 0).total());
  return smallest;
}

int Recomputed(const Net& net) {
  int steps = 0;
  for (const PlanStep& step : PlanSteps(net)) steps += step.is_recomputation ? 1 : 0;
  return steps;
}

using Values = std::vector<float>;

// Losses and gradients of two passes, and the statistics after them.
std::map<std::string, Values> Train(Net& net) {
  std::map<std::string, Values> results;
  for (int pass = 0; pass < 2; ++pass) {
    results["loss"].push_back(net.ForwardBackward());
    for (const Net::LearnableParam& param : net.learnable_params()) {
      Values& values = results[param.name];
      values.insert(values.end(), param.blob->cpu_diff(),
                    param.blob->cpu_diff() + param.blob->count());
      values.insert(values.end(), param.blob->cpu_data(),
                    param.blob->cpu_data() + param.blob->count());
    }
  }
  return results;
}

class RecomputeActivationsTest : public ::testing::TestWithParam<std::tuple<DeepNet, Precision>> {};

TEST_P(RecomputeActivationsTest, GivesTheSameBitsInLessMemory) {
  const auto& [net_case, precision] = GetParam();
  const auto usual = MakeLimitedNet(net_case, precision, 0);
  const int64_t usual_peak = MemoryOfPlan(*usual).total(), least = SmallestPeak(*usual);
  ASSERT_LT(least, usual_peak);
  EXPECT_EQ(Recomputed(*usual), 0);
  const std::map<std::string, Values> want = Train(*usual);
  for (const int64_t limit : {least, (least + usual_peak) / 2, usual_peak - 1}) {
    const auto limited = MakeLimitedNet(net_case, precision, limit);
    EXPECT_GT(Recomputed(*limited), 0);
    EXPECT_LE(MemoryOfPlan(*limited).total(), limit);
    EXPECT_EQ(Train(*limited), want) << limit;
  }
  EXPECT_EQ(Recomputed(*MakeLimitedNet(net_case, precision, usual_peak)), 0);
}

INSTANTIATE_TEST_SUITE_P(Nets, RecomputeActivationsTest,
                         ::testing::Combine(::testing::ValuesIn(DeepNets()),
                                            ::testing::Values(FP32, BF16, FP16, FP64)),
                         [](const auto& info) {
                           return std::get<0>(info.param).name +
                                  Precision_Name(std::get<1>(info.param));
                         });

TEST(MemoryLimitTest, OneBelowTheSmallestPlanSaysWhatIsPossible) {
  const DeepNet net = DeepNets()[0];
  try {
    MakeLimitedNet(net, FP32, 1);
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("memory_limit is 1 MiB; the smallest plan takes "));
  }
}

TEST(MemoryLimitTest, AKeepAllNetCannotHaveOne) {
  NetParameter param;
  ParseTextProto(kDeepInput + DeepNets()[0].layers + kDeepLoss, "net", &param);
  try {
    Net(param, {.keep_all = true, .memory_limit = int64_t{1} << 40});
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("keep_all = false"));
  }
}

// The copy of the input was made again from the input, which held the TanH's result by then.
TEST(MemoryLimitTest, AnInputThatALayerOverwritesIsNotReadAgain) {
  NetParameter param;
  ParseTextProto(
      "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 64 } } } "
      "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y' "
      "  inner_product_param { num_output: 1 weight_filler { type: 'xavier' } } } "
      "layer { name: 'tanh' type: 'TanH' bottom: 'x' top: 'x' } "
      "layer { name: 't' type: 'Input' top: 't' input_param { shape { dim: 1 dim: 1 } } } "
      "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'y' bottom: 't' top: 'loss' } ",
      "net", &param);
  param.mutable_state()->set_phase(TRAIN);
  const auto gradient = [&](int64_t limit) {
    Net net(param, NetOptions{.keep_all = false, .seed = 3, .memory_limit = limit});
    Blob& input = *net.blob_by_name("x");
    std::fill_n(input.mutable_cpu_data(), input.count(), 3.0f);
    net.blob_by_name("t")->mutable_cpu_data()[0] = 7;
    net.ForwardBackward();
    const Blob& weights = *net.layer_params("ip").at(0);
    return std::vector<float>(weights.cpu_diff(), weights.cpu_diff() + weights.count());
  };
  Net unlimited(param, NetOptions{.keep_all = false});
  EXPECT_EQ(gradient(0), gradient(SmallestPeak(unlimited)));
}

// The solver's state for each parameter counts as well.
TEST(MemoryLimitTest, CountsTheSolversState) {
  // Few parameters compared with its activations.
  const std::string layers = Conv("x", "a", 8) + NormOf("a") + Conv("an", "b", 8) + NormOf("b") +
                             Conv("bn", "c", 8) + NormOf("c") +
                             "layer { name: 'mean' type: 'Pooling' bottom: 'cn' top: 'last' "
                             "  pooling_param { pool: AVE global_pooling: true } } ";
  NetParameter param;
  ParseTextProto(kDeepInput + layers + kDeepLoss, "net", &param);
  param.mutable_state()->set_phase(TRAIN);
  NetOptions options{.keep_all = false, .seed = 3};
  const int64_t peak = MemoryOfPlan(Net(param, options)).total();
  options.memory_limit = peak;
  EXPECT_EQ(Recomputed(Net(param, options)), 0);
  options.solver_states = 1;
  EXPECT_GT(Recomputed(Net(param, options)), 0);
}

// The plan for the shape that a Filter finds has more room and recomputes less: the values that it
// keeps must exist.
TEST(MemoryLimitTest, APlanForAFoundShapeReadsNothingThatWasDropped) {
  const auto swish = [](const std::string& bottom, const std::string& top) {
    return StrCat("layer { name: '", top, "' type: 'Swish' bottom: '", bottom, "' top: '", top,
                  "' } ");
  };
  const std::string layers =
      Conv("x", "a", 8) + swish("a", "b") + swish("b", "c") + Conv("c", "d", 8) + swish("d", "e") +
      "layer { name: 'filter' type: 'Filter' bottom: 'e' bottom: 't' bottom: 's' "
      "        top: 'f' top: 'some_t' } " +
      Conv("f", "g", 32) + swish("g", "h") + Conv("h", "i", 32) + swish("i", "last") +
      "layer { name: 'ip' type: 'InnerProduct' bottom: 'last' top: 'ip' "
      "  inner_product_param { num_output: 5 weight_filler { type: 'xavier' } } } "
      "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'ip' bottom: 'some_t' top: 'loss' } ";
  const std::string selector =
      "layer { name: 's' type: 'Input' top: 's' input_param { shape { dim: 4 } } } ";
  for (const int selected : {1, 2, 3, 4}) {
    const auto make = [&](int64_t limit) {
      auto net = MakeLimitedNet(selector + layers, FP32, limit);
      for (int i = 0; i < 4; ++i)
        net->blob_by_name("s")->mutable_cpu_data()[i] = i < selected ? 1.0f : 0.0f;
      return net;
    };
    const auto usual = make(0);
    const int64_t usual_peak = MemoryOfPlan(*usual).total();
    const auto want = Train(*usual);
    const auto limited = make(usual_peak - 1);
    EXPECT_GT(Recomputed(*limited), 0);
    EXPECT_EQ(Train(*limited), want) << selected;
  }
}

}  // namespace
}  // namespace caffe
