// Copies of filters stored channels-last, like the images: the numbers do not change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "caffe/blob.hpp"
#include "caffe/common.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/graph/weight_copies.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "caffe/net/training_net.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/plan/executor.hpp"
#include "caffe/solver.hpp"

namespace caffe {
namespace {

using ::testing::UnorderedElementsAre;

std::string Layer(const std::string& type, const std::string& name, const std::string& bottom,
                  const std::string& options) {
  return StrCat("layer { name: '", name, "' type: '", type, "' bottom: '", bottom, "' top: '", name,
                "' convolution_param { num_output: 16 kernel_size: 3 pad: 1 weight_filler { type: "
                "'xavier' } ",
                options, " } param { name: '", options == "group: 1" ? "shared" : "",
                "' } } layer { name: '", name, "_relu' type: 'ReLU' bottom: '", name, "' top: '",
                name, "' } ");
}

std::string Convolution(const std::string& name, const std::string& bottom,
                        const std::string& options = "bias_term: true") {
  return Layer("Convolution", name, bottom, options);
}

// Groups, filters of one pixel or one channel, two layers that share a filter, and a layer whose
// data gradient is a convolution.
std::string Net16() {
  return "layer { name: 'data' type: 'DummyData' top: 'data' top: 'label' dummy_data_param { "
         "shape { dim: 4 dim: 3 dim: 6 dim: 5 } shape { dim: 4 } data_filler { type: 'gaussian' } "
         "data_filler { type: 'constant' value: 1 } } } " +
         Convolution("stem", "data") + Convolution("grouped", "stem", "group: 4") +
         Convolution("depthwise", "grouped", "group: 16 bias_term: false") +
         "layer { name: 'point' type: 'Convolution' bottom: 'depthwise' top: 'point' "
         "convolution_param { num_output: 16 kernel_size: 1 weight_filler { type: 'xavier' } } } "
         "layer { name: 'norm' type: 'BatchNorm' bottom: 'point' top: 'norm' } "
         "layer { name: 'norm_relu' type: 'ReLU' bottom: 'norm' top: 'norm' } " +
         Convolution("one", "norm", "group: 1") + Convolution("two", "one", "group: 1") +
         Layer("Deconvolution", "up", "two", "stride: 2") +
         "layer { name: 'ip' type: 'InnerProduct' bottom: 'up' top: 'ip' inner_product_param { "
         "num_output: 3 weight_filler { type: 'xavier' } } } layer { name: 'loss' type: "
         "'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }";
}

SolverParameter Solver16(const std::string& options) {
  SolverParameter param;
  ParseTextProto(StrCat("base_lr: 0.02 lr_policy: 'fixed' random_seed: 3 max_iter: 5 "
                        "snapshot_after_train: false ",
                        options, " net_param { ", Net16(), " }"),
                 "solver", &param);
  return param;
}

// Nets are on the emulated GPU while this exists, without the named passes.
class OnGpu {
 public:
  explicit OnGpu(const char* disabled = nullptr) {
    Caffe::set_mode(Caffe::GPU);
    if (disabled != nullptr) ::setenv("CAFFE_DISABLE_PASSES", disabled, 1);
  }
  ~OnGpu() {
    Caffe::set_mode(Caffe::CPU);
    ::unsetenv("CAFFE_DISABLE_PASSES");
  }
  OnGpu(const OnGpu&) = delete;
};

// The layers whose filters have channels-last copies.
std::vector<std::string> TurnedFilters(const Net& net) {
  std::vector<std::string> names;
  for (const WeightCopy& copy : WeightCopies(net.graph())) {
    if (copy.results[0]->desc.layout == Layout::kChannelsLast)
      names.push_back(copy.weights[0]->name);
  }
  return names;
}

std::vector<float> Parameters(const Net& net) {
  std::vector<float> all;
  for (const Net::LearnableParam& learnable : net.learnable_params()) {
    const float* values = learnable.blob->cpu_data<float>();
    all.insert(all.end(), values, values + learnable.blob->count());
  }
  return all;
}

class CudaChannelsLastFiltersTest : public ::testing::TestWithParam<const char*> {};

TEST_P(CudaChannelsLastFiltersTest, TrainToTheSameBits) {
  const auto train = [](const char* disabled, size_t copies) {
    const OnGpu on(disabled);
    Solver solver(Solver16(GetParam()), {.keep_all = false});
    EXPECT_EQ(TurnedFilters(solver.net()).size(), copies);
    solver.Step(5);
    return Parameters(solver.net());
  };
  EXPECT_EQ(train(nullptr, 5), train("channels-last-filters", 0));
}

INSTANTIATE_TEST_SUITE_P(Solvers, CudaChannelsLastFiltersTest,
                         ::testing::Values("type: 'SGD' momentum: 0.9 precision: BF16",
                                           "type: 'SGD' momentum: 0.9 precision: FP16",
                                           "type: 'SGD' momentum: 0.9 iter_size: 2",
                                           "type: 'Adam' precision: BF16",
                                           "type: 'LAMB' precision: FP16"));

TEST(CudaChannelsLastFiltersTest, TheUpdateWritesThem) {
  for (const char* precision : {"BF16", "FP32"}) {
    std::unique_ptr<Solver> solver;
    {
      const OnGpu on;
      solver = std::make_unique<Solver>(Solver16(StrCat("type: 'SGD' precision: ", precision)),
                                        SolverOptions{.keep_all = false});
    }
    const Executor& executor = TrainingNet(solver->net()).executor();
    TrainingNet(solver->net()).executor().profiler().set_on(true);
    const auto made = [&] {
      int64_t runs = 0;
      for (size_t i = 0; i < executor.program().copies.size(); ++i)
        runs += executor.profiler().times()[i].runs;
      return runs;
    };
    solver->Step(1);
    const int64_t first = made();
    EXPECT_GE(first, 5);
    solver->Step(2);
    EXPECT_EQ(made(), first);
    // Weights from outside are in the plain order, and copied again.
    const float loss = TrainingNet(solver->net()).Forward(100);
    for (const Net::LearnableParam& learnable : solver->net().learnable_params())
      learnable.blob->mutable_cpu_data<float>();
    EXPECT_EQ(TrainingNet(solver->net()).Forward(100), loss);
    EXPECT_GT(made(), first);
  }
}

TEST(CudaChannelsLastFiltersTest, AreOfConvolutionsOfChannelsLastImages) {
  const OnGpu on;
  NetParameter param;
  ParseTextProto(Net16(), "net", &param);
  param.mutable_state()->set_phase(TRAIN);
  NetOptions options{.keep_all = false, .seed = 1};
  const auto filters = [&] { return TurnedFilters(Net(param, options)); };
  EXPECT_THAT(filters(), UnorderedElementsAre("stem.0", "grouped.0", "one.0", "one.0", "up.0"));
  options.disabled_passes = {"keep-weight-copies"};
  EXPECT_TRUE(filters().empty());
  options.disabled_passes = {};
  Caffe::set_mode(Caffe::CPU);
  EXPECT_TRUE(filters().empty());
}

// In testing, a normalisation is folded into the filter, and the result is copied.
TEST(CudaChannelsLastFiltersTest, FoldedFiltersHaveThemToo) {
  const OnGpu on;
  NetParameter param;
  ParseTextProto(
      "layer { name: 'data' type: 'DummyData' top: 'data' dummy_data_param { shape { dim: 2 dim: 3 "
      "dim: 6 dim: 5 } data_filler { type: 'gaussian' } } } " +
          Convolution("conv", "data") +
          "layer { name: 'norm' type: 'BatchNorm' bottom: 'conv' top: 'norm' } layer { name: 'next'"
          " type: 'Convolution' bottom: 'norm' top: 'next' convolution_param { num_output: 16 "
          "kernel_size: 3 weight_filler { type: 'xavier' } } } "
          "layer { name: 'last' type: 'BatchNorm' bottom: 'next' top: 'last' }",
      "net", &param);
  param.mutable_state()->set_phase(TEST);
  for (const Precision precision : {FP32, BF16}) {
    NetOptions options{.keep_all = false, .seed = 1, .precision = precision};
    Net turned(param, options);
    options.disabled_passes = {"channels-last-filters"};
    Net plain(param, options);
    EXPECT_EQ(TurnedFilters(turned).size(), 2u);
    EXPECT_TRUE(TurnedFilters(plain).empty());
    turned.Forward();
    plain.Forward();
    const Blob &one = *turned.blob_by_name("last"), &other = *plain.blob_by_name("last");
    for (int64_t i = 0; i < one.count(); ++i)
      ASSERT_EQ(one.cpu_data<float>()[i], other.cpu_data<float>()[i]) << i;
  }
}

}  // namespace
}  // namespace caffe
