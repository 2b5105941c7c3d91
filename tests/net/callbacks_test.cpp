// Callbacks around layers, partial runs, one thread at a time, and resuming in place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "caffe/net/training_net.hpp"
#include "tests/support/error_text.hpp"

namespace caffe {
namespace {

using ::testing::ElementsAre;
using testing::ErrorText;
using ::testing::HasSubstr;

constexpr char kNet[] = R"(
  name: "small" force_backward: true
  layer { name: "x" type: "DummyData" top: "x"
    dummy_data_param { shape { dim: 2 dim: 3 } data_filler { type: "gaussian" std: 1 } } }
  layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
    inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
  layer { name: "sum" type: "Reduction" bottom: "ip" top: "sum" loss_weight: 1 }
)";

NetParameter Parse() {
  NetParameter param;
  ParseTextProto(kNet, "test", &param);
  return param;
}

TEST(NetCallbacksTest, RunAroundEachLayerAndMayChangeBlobs) {
  Net net(Parse(), {.seed = 1});
  std::vector<int> calls;
  net.AddBeforeForward([&](int layer) { calls.push_back(layer); });
  net.AddAfterForward([&](int layer) {
    calls.push_back(10 + layer);
    Blob& blob = *net.blob_by_name("ip");
    if (layer == 1) std::fill_n(blob.mutable_cpu_data(), blob.count(), 2.0f);
  });
  float loss = 0;
  net.Forward(&loss);
  EXPECT_EQ(loss, 8);
  EXPECT_THAT(calls, ElementsAre(0, 10, 1, 11, 2, 12));
  calls.clear();
  net.AddBeforeBackward([&](int layer) { calls.push_back(20 + layer); });
  net.BackwardFromTo(2, 1);
  EXPECT_THAT(calls, ElementsAre(22, 21));
}

TEST(NetCallbacksTest, NeedAKeepAllNet) {
  Net net(Parse(), {.keep_all = false});
  EXPECT_THROW(net.AddBeforeForward([](int) {}), InvalidArgument);
}

TEST(NetCallbacksTest, ASecondThreadAndACallbackThatRunsTheNetAreTold) {
  Net net(Parse());
  std::string within, beside;
  net.AddBeforeForward([&](int layer) {
    if (layer > 0) return;
    within = ErrorText<InvalidArgument>([&] { net.Forward(); });
    beside = std::async(std::launch::async, [&] {
               return ErrorText<InvalidArgument>([&] { net.Forward(); }) +
                      ErrorText<InvalidArgument>([&] { net.blob_by_name("ip")->cpu_data(); });
             }).get();
    net.blob_by_name("ip")->cpu_data();
  });
  net.Forward();
  EXPECT_THAT(within, HasSubstr("net 'small' is running"));
  EXPECT_THAT(beside, HasSubstr("net 'small' is running in another thread"));
  EXPECT_THAT(beside, HasSubstr("the blob's net is running in another thread"));
}

TEST(NetCallbacksTest, BlobsOfALayer) {
  const Net net(Parse());
  EXPECT_THAT(net.top_ids(1), ElementsAre(1));
  EXPECT_THAT(net.bottom_ids(2), ElementsAre(1));
  EXPECT_EQ(net.definition().layer_size(), 3);
}

TEST(ResumeFromTest, GivesTheNumbersOfTheOtherSeedInTheSameBlobs) {
  Net net(Parse(), {.seed = 1}), other(Parse(), {.seed = 2});
  Blob* const x = net.blob_by_name("x").get();
  net.Forward();
  other.Forward();
  ASSERT_NE(x->cpu_data()[0], other.blob_by_name("x")->cpu_data()[0]);
  TrainingNet(net).ResumeFrom(2, {});
  TrainingNet(net).Forward(0);
  EXPECT_EQ(net.blob_by_name("x").get(), x);
  EXPECT_EQ(x->cpu_data()[0], other.blob_by_name("x")->cpu_data()[0]);
}

}  // namespace
}  // namespace caffe
