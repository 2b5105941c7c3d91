// Letting the preceding convolution compute a normalisation's statistics changes numbers only by
// rounding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "caffe/blob.hpp"
#include "caffe/common.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "tests/support/classifier_net.hpp"
#include "tests/support/planned_ops.hpp"

namespace caffe {
namespace {

using testing::ClassifierNet;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::LayersOf;

struct ConvOptions {
  int kernel = 3, outputs = 16, group = 1;
  bool has_bias = false, has_relu = true;
};

std::string ConvAndNorm(const std::string& name, const std::string& bottom,
                        const ConvOptions& options) {
  return StrCat(
      "layer { name: '", name, "' type: 'Convolution' bottom: '", bottom, "' top: '", name,
      "' convolution_param { num_output: ", options.outputs, " kernel_size: ", options.kernel,
      " pad: ", options.kernel / 2, " group: ", options.group,
      " bias_term: ", options.has_bias ? "true" : "false",
      " weight_filler { type: 'xavier' } } } layer { name: '", name,
      "_bn' type: 'BatchNorm' bottom: '", name, "' top: '", name, "' } layer { name: '", name,
      "_scale' type: 'Scale' bottom: '", name, "' top: '", name,
      "' scale_param { bias_term: true filler { type: 'uniform' min: 0.5 max: 1 } bias_filler { "
      "type: 'uniform' min: -0.5 max: 0.5 } } } ",
      options.has_relu ? StrCat("layer { name: '", name, "_relu' type: 'ReLU' bottom: '", name,
                                "' top: '", name, "' } ")
                       : "");
}

// A net with a stem of 3 channels, and a residual that a normalisation adds.
NetParameter Residual() {
  return ClassifierNet(
      ConvAndNorm("stem", "data", {}) + ConvAndNorm("a", "stem", {}) +
          ConvAndNorm("b", "a", {.kernel = 1, .has_relu = false}) +
          "layer { name: 'c' type: 'Eltwise' bottom: 'stem' bottom: 'b' top: 'c' } "
          "layer { name: 'd' type: 'ReLU' bottom: 'c' top: 'c' } ",
      "c");
}

class CudaFuseStatisticsTest : public ::testing::Test {
 protected:
  void SetUp() override { Caffe::set_mode(Caffe::GPU); }
  void TearDown() override { Caffe::set_mode(Caffe::CPU); }

  static NetOptions Options(Precision precision) {
    return {.keep_all = false, .seed = 1, .precision = precision};
  }
};

// The norm of the difference, over the norm of the first.
template <typename Numbers>
double Difference(const Numbers& one, const Numbers& other, int64_t count) {
  double difference = 0, norm = 1e-12;
  for (int64_t i = 0; i < count; ++i) {
    difference += (double{one[i]} - double{other[i]}) * (double{one[i]} - double{other[i]});
    norm += double{one[i]} * double{one[i]};
  }
  return std::sqrt(difference / norm);
}

// The parameters include the running statistics.
void ExpectNearParameters(const Net& one, const Net& other) {
  NetParameter a, b;
  one.ToProto(&a);
  other.ToProto(&b);
  for (int k = 0; k < a.layer_size(); ++k) {
    for (int i = 0; i < a.layer(k).blobs_size(); ++i) {
      const auto &x = a.layer(k).blobs(i).data(), &y = b.layer(k).blobs(i).data();
      EXPECT_LE(Difference(x.data(), y.data(), x.size()), 2e-3) << a.layer(k).name() << i;
    }
  }
}

TEST_F(CudaFuseStatisticsTest, ChangesNoNumberBeyondRounding) {
  NetOptions options = Options(FP16);
  Net fused(Residual(), options);
  options.disabled_passes = {"fuse-statistics"};
  Net plain(Residual(), options);
  EXPECT_THAT(LayersOf(fused, "Conv+ChannelStatistics+UpdateRunningStatistics"),
              ElementsAre("a", "b"));
  EXPECT_THAT(LayersOf(fused, "BatchNorm"), ElementsAre("stem_bn"));
  EXPECT_THAT(LayersOf(plain, "Conv+ChannelStatistics+UpdateRunningStatistics"), IsEmpty());
  for (int pass = 0; pass < 3; ++pass)
    EXPECT_NEAR(fused.ForwardBackward(), plain.ForwardBackward(), 1e-3);
  ExpectNearParameters(fused, plain);
  for (size_t k = 0; k < fused.learnable_params().size(); ++k) {
    const Blob &one = *fused.learnable_params()[k].blob, &other = *plain.learnable_params()[k].blob;
    EXPECT_LE(Difference(one.cpu_diff(), other.cpu_diff(), one.count()), 1e-2)
        << fused.learnable_params()[k].name;
  }
}

TEST_F(CudaFuseStatisticsTest, LeavesAloneWhatNoEngineServes) {
  for (const ConvOptions& options : {ConvOptions{.kernel = 7}, ConvOptions{.outputs = 12},
                                     ConvOptions{.group = 2}, ConvOptions{.has_bias = true}}) {
    const NetParameter param =
        ClassifierNet(ConvAndNorm("stem", "data", {}) + ConvAndNorm("a", "stem", options), "a");
    EXPECT_THAT(
        LayersOf(Net(param, Options(FP16)), "Conv+ChannelStatistics+UpdateRunningStatistics"),
        IsEmpty());
  }
  for (const Precision precision : {FP32, BF16})
    EXPECT_THAT(LayersOf(Net(Residual(), Options(precision)),
                         "Conv+ChannelStatistics+UpdateRunningStatistics"),
                IsEmpty());
  Caffe::set_mode(Caffe::CPU);
  EXPECT_THAT(
      LayersOf(Net(Residual(), Options(FP16)), "Conv+ChannelStatistics+UpdateRunningStatistics"),
      IsEmpty());
}

}  // namespace
}  // namespace caffe
