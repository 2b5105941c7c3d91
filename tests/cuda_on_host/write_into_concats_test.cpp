// Convolutions that write into a concatenation's result compute the same bits, in no more memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "caffe/blob.hpp"
#include "caffe/common.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "caffe/ops/convert.hpp"
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
    for (int pass = 0; pass < 2; ++pass) {
      EXPECT_EQ(fused.ForwardBackward(), plain.ForwardBackward());
      for (size_t k = 0; k < fused.learnable_params().size(); ++k) {
        const Blob &one = *fused.learnable_params()[k].blob,
                   &other = *plain.learnable_params()[k].blob;
        for (int64_t i = 0; i < one.count(); ++i)
          ASSERT_EQ(one.cpu_diff()[i], other.cpu_diff()[i]) << fused.learnable_params()[k].name;
      }
    }
  }
}

// Otherwise each convolution would copy the results of the previous ones.
TEST_F(CudaWriteIntoConcatsTest, TheTensorsOfAChainHaveOnePlace) {
  const Net net(Inception(), Options());
  int chained = 0;
  for (const Node* node : net.graph().ScheduledNodes()) {
    const auto* region = node->op.As<ops::Fused>();
    const int place = region == nullptr ? -1 : region->InputOf(1, ops::InsertChannels::kWhole);
    if (place < 0) continue;
    const Value* whole = node->inputs[static_cast<size_t>(place)];
    ++chained;
    EXPECT_EQ(whole->arena_offset, node->outputs[0]->arena_offset);
  }
  EXPECT_EQ(chained, 3);
}

TEST_F(CudaWriteIntoConcatsTest, LeavesAloneWhatIsNoConvolutionsAlone) {
  const std::string a = Conv("a", "stem", 16, 1), b = Conv("b", "stem", 8, 3);
  const auto into = [](const NetParameter& param, NetOptions options) {
    return CountOps(Net(param, options), "Conv+InsertChannels");
  };
  EXPECT_EQ(into(Inception(a + b, {"a", "b"}), Options()), 2);
  EXPECT_EQ(into(Inception(a + b, {"a", "b", "pool"}), Options()), 0);
  EXPECT_EQ(into(Inception(a + b + Conv("c", "a", 8, 1), {"a", "b", "c"}), Options()), 0);
  EXPECT_EQ(into(Inception(a + Conv("b", "stem", 12, 3), {"a", "b"}), Options()), 0);
  NetOptions keeping = Options();
  keeping.keep_all = true;
  EXPECT_EQ(into(Inception(a + b, {"a", "b"}), keeping), 0);
  Caffe::set_mode(Caffe::CPU);
  EXPECT_EQ(into(Inception(a + b, {"a", "b"}), Options(FP32)), 0);
}

}  // namespace
}  // namespace caffe
