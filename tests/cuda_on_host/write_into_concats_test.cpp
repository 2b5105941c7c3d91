// Convolutions and normalizations that write into a concatenation's result compute the same bits,
// in no more memory; so do gradients of normalizations that read a part.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "caffe/blob.hpp"
#include "caffe/common.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/graph/shared_parts.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "tests/support/planned_ops.hpp"

namespace caffe {
namespace {

using testing::CountOps;

std::string Conv(const std::string& name, const std::string& bottom, int outputs, int kernel) {
  return StrCat(
      "layer { name: '", name, "' type: 'Convolution' bottom: '", bottom, "' top: '", name,
      "' convolution_param { num_output: ", outputs, " kernel_size: ", kernel, " pad: ", kernel / 2,
      " weight_filler { type: 'xavier' } bias_filler { type: 'gaussian' } } } ", "layer { name: '",
      name, "_relu' type: 'ReLU' bottom: '", name, "' top: '", name, "' } ");
}

// A convolution, its normalization with a scale, and a ReLU.
std::string NormedConv(const std::string& name, const std::string& bottom, int outputs,
                       int kernel) {
  return StrCat(
      "layer { name: '", name, "' type: 'Convolution' bottom: '", bottom, "' top: '", name,
      "' convolution_param { num_output: ", outputs, " kernel_size: ", kernel, " pad: ", kernel / 2,
      " bias_term: false weight_filler { type: 'xavier' } } } layer { name: '", name,
      "_norm' type: 'BatchNorm' bottom: '", name, "' top: '", name, "' } layer { name: '", name,
      "_scale' type: 'Scale' bottom: '", name, "' top: '", name,
      "' scale_param { bias_term: true filler { type: 'uniform' min: -1 max: 1 } bias_filler { "
      "type: 'uniform' min: -0.5 max: 0.5 } } } layer { name: '",
      name, "_relu' type: 'ReLU' bottom: '", name, "' top: '", name, "' } ");
}

constexpr const char* kPool =
    "layer { name: 'pool' type: 'Pooling' bottom: 'stem' top: 'pool' pooling_param { "
    "kernel_size: 3 stride: 1 pad: 1 } } ";

// Branches after a stem and its pooling, joined as in GoogLeNet.
NetParameter Inception(const std::string& branches, std::vector<std::string> joined) {
  std::string bottoms;
  for (const std::string& name : joined) bottoms += " bottom: '" + name + "'";
  NetParameter param;
  ParseTextProto(
      "layer { name: 'data' type: 'DummyData' top: 'data' top: 'label' dummy_data_param { "
      "shape { dim: 4 dim: 3 dim: 9 dim: 8 } shape { dim: 4 } data_filler { type: 'gaussian' } "
      "data_filler { type: 'constant' value: 1 } } } " +
          Conv("stem", "data", 16, 3) + kPool + branches +
          StrCat("layer { name: 'joined' type: 'Concat'", bottoms, " top: 'joined' } ") +
          Conv("last", "joined", 8, 1) +
          "layer { name: 'ip' type: 'InnerProduct' bottom: 'last' top: 'ip' inner_product_param { "
          "num_output: 3 weight_filler { type: 'xavier' } } } layer { name: 'loss' type: "
          "'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }",
      "net", &param);
  param.mutable_state()->set_phase(TRAIN);
  return param;
}

// The branch with the last convolution is not the last one in the concatenation.
NetParameter Inception() {
  return Inception(Conv("d", "pool", 8, 1) + Conv("a", "stem", 16, 1) +
                       Conv("reduce", "stem", 8, 1) + Conv("b", "reduce", 24, 3) +
                       Conv("c", "reduce", 8, 5),
                   {"a", "b", "c", "d"});
}

// The same with normalizations. One branch is the pooling itself, as where Inception v3 halves its
// images; one has no ReLU.
NetParameter NormedInception() {
  std::string without = NormedConv("c", "stem", 8, 3);
  without.resize(without.rfind("layer {"));
  return Inception(NormedConv("d", "pool", 8, 1) + NormedConv("a", "stem", 16, 1) +
                       NormedConv("b", "stem", 24, 3) + without,
                   {"a", "pool", "b", "c", "d"});
}

void ExpectSameGradients(Net& one, Net& other) {
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_EQ(one.ForwardBackward(), other.ForwardBackward());
    for (size_t k = 0; k < one.learnable_params().size(); ++k) {
      const Blob &from = *one.learnable_params()[k].blob, &to = *other.learnable_params()[k].blob;
      for (int64_t i = 0; i < from.count(); ++i)
        ASSERT_EQ(from.cpu_diff()[i], to.cpu_diff()[i]) << one.learnable_params()[k].name;
    }
  }
}

class CudaWriteIntoConcatsTest : public ::testing::Test {
 protected:
  void SetUp() override { Caffe::set_mode(Caffe::GPU); }
  void TearDown() override { Caffe::set_mode(Caffe::CPU); }

  static NetOptions Options(Precision precision = BF16) {
    return {.keep_all = false, .seed = 1, .precision = precision};
  }
};

TEST_F(CudaWriteIntoConcatsTest, GivesTheSameBitsInNoMoreMemory) {
  for (const Precision precision : {FP32, FP16, BF16}) {
    NetOptions options = Options(precision);
    Net fused(Inception(), options);
    options.disabled_passes = {"write-into-concats"};
    Net plain(Inception(), options);
    EXPECT_EQ(CountOps(fused, "Conv+InsertChannels"), 4);
    EXPECT_EQ(CountOps(fused, "Concat"), 0);
    EXPECT_EQ(CountOps(plain, "Concat"), 1);
    EXPECT_LE(fused.graph().arena_bytes, plain.graph().arena_bytes);
    ExpectSameGradients(fused, plain);
  }
}

// In float16 the convolution has summed the statistics.
TEST_F(CudaWriteIntoConcatsTest, NormalizationsWriteAndTheirGradientsReadParts) {
  for (const Precision precision : {FP32, FP16, BF16}) {
    NetOptions options = Options(precision);
    Net fused(NormedInception(), options);
    options.disabled_passes = {"write-into-concats"};
    Net plain(NormedInception(), options);
    const std::string norm = precision == FP16 ? "BatchNormInference" : "BatchNorm";
    EXPECT_EQ(CountOps(fused, norm + "+InsertChannels"), 4);
    EXPECT_EQ(CountOps(fused, "InsertChannels"), 1);
    EXPECT_EQ(CountOps(fused, "Concat"), 0);
    EXPECT_EQ(CountOps(fused, "SliceOf+BatchNormInference+BatchNormGrad"), 3);
    EXPECT_EQ(CountOps(fused, "SliceOf+BatchNormGrad"), 1);
    EXPECT_EQ(CountOps(fused, "SliceOf"), 1);  // the pooling's
    EXPECT_EQ(CountOps(plain, "Concat"), 1);
    EXPECT_EQ(CountOps(plain, "SliceOf"), 5);
    EXPECT_LE(fused.graph().arena_bytes, plain.graph().arena_bytes);
    ExpectSameGradients(fused, plain);
  }
}

// Otherwise each step would copy the results of the previous ones.
TEST_F(CudaWriteIntoConcatsTest, TheTensorsOfAChainHaveOnePlace) {
  for (const auto& [param, links] : {std::pair{Inception(), 3}, {NormedInception(), 4}}) {
    const Net net(param, Options());
    int chained = 0;
    for (const Node* node : net.graph().ScheduledNodes()) {
      if (!testing::NameOf(node->op).ends_with("InsertChannels")) continue;
      for (const SharedPart& shared : SharedParts(*node)) {
        ++chained;
        EXPECT_EQ(shared.part->arena_offset, node->outputs[0]->arena_offset);
      }
    }
    EXPECT_EQ(chained, links);
  }
}

TEST_F(CudaWriteIntoConcatsTest, LeavesAloneWhatNothingWrites) {
  const std::string a = Conv("a", "stem", 16, 1), b = Conv("b", "stem", 8, 3);
  const auto into = [](const NetParameter& param, NetOptions options) {
    return CountOps(Net(param, options), "Conv+InsertChannels");
  };
  EXPECT_EQ(into(Inception(a + b, {"a", "b"}), Options()), 2);
  // In training the gradients of their ReLUs read a and b.
  EXPECT_EQ(into(Inception(a + b, {"a", "b", "pool"}), Options()), 0);
  const auto in_testing = [&](const std::string& branches, std::vector<std::string> joined) {
    NetParameter param = Inception(branches, std::move(joined));
    param.mutable_state()->set_phase(TEST);
    NetOptions options = Options();
    options.with_backward = false;
    return into(param, options);
  };
  // One part is copied; with two, all are.
  const std::string c = Conv("c", "a", 8, 1);
  EXPECT_EQ(in_testing(a + b, {"a", "b", "pool"}), 2);
  EXPECT_EQ(in_testing(a + b + c, {"a", "b", "c"}), 2);
  EXPECT_EQ(in_testing(a + b + c, {"a", "b", "c", "pool"}), 0);
  EXPECT_EQ(into(Inception(a + Conv("b", "stem", 12, 3), {"a", "b"}), Options()), 0);
  NetOptions keeping = Options();
  keeping.keep_all = true;
  EXPECT_EQ(into(Inception(a + b, {"a", "b"}), keeping), 0);
  Caffe::set_mode(Caffe::CPU);
  EXPECT_EQ(into(Inception(a + b, {"a", "b"}), Options(FP32)), 0);
}

}  // namespace
}  // namespace caffe
