// What layers of the host read and write besides scores: labels above 256, item numbers and boxes
// are not exact in bfloat16, so they are stored in float.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/net.hpp"
#include "tests/support/blob_values.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

std::string InputTop(const std::string& name, const std::string& dims) {
  std::string shape;
  for (size_t at = 0; at < dims.size();) {
    const size_t end = std::min(dims.find(' ', at), dims.size());
    shape += " dim: " + dims.substr(at, end - at);
    at = end + 1;
  }
  return "layer { name: '" + name + "' type: 'Input' top: '" + name + "' input_param { shape {" +
         shape + " } } } ";
}

struct HostLayer {
  std::string net;
  std::vector<std::string> exact;  // blobs
};

TEST(ExactHostCallsTest, LabelsAndBoxesAreStoredInFloat) {
  const std::vector<HostLayer> layers = {
      {InputTop("s", "4 1 5") + InputTop("l", "1 2") +
           "layer { name: 'y' type: 'WarpCTC' bottom: 's' bottom: 'l' top: 'y' }",
       {"l", "y"}},
      {InputTop("s", "4 1 5") + "layer { name: 'y' type: 'CTCDecoder' bottom: 's' top: 'y' }",
       {"y"}},
      {InputTop("loc", "1 16") + InputTop("conf", "1 8") + InputTop("p", "1 2 16") +
           InputTop("gt", "1 1 1 8") +
           "layer { name: 'y' type: 'MultiBoxLoss' bottom: 'loc' bottom: 'conf' bottom: 'p' "
           "bottom: 'gt' top: 'y' multibox_loss_param { num_classes: 2 } }",
       {"p", "gt", "y"}},
      {InputTop("loc", "1 16") + InputTop("conf", "1 8") + InputTop("p", "1 2 16") +
           "layer { name: 'y' type: 'DetectionOutput' bottom: 'loc' bottom: 'conf' bottom: 'p' "
           "top: 'y' detection_output_param { num_classes: 2 nms_param { nms_threshold: 0.5 } } }",
       {"p", "y"}},
      {InputTop("scores", "1 18 4 6") + InputTop("offsets", "1 36 4 6") + InputTop("sizes", "1 3") +
           "layer { name: 'y' type: 'Proposal' bottom: 'scores' bottom: 'offsets' bottom: 'sizes' "
           "top: 'y' }",
       {"sizes", "y"}},
      {InputTop("x", "3 2") + InputTop("selector", "3 1") +
           "layer { name: 'y' type: 'Filter' bottom: 'x' bottom: 'selector' top: 'y' }",
       {"selector"}}};
  for (const HostLayer& layer : layers) {
    for (const Precision precision : {BF16, FP16}) {
      const Net net(testing::ParseNet(layer.net), {.precision = precision});
      for (const std::string& blob : layer.exact)
        EXPECT_EQ(net.graph().blobs.at(blob)->desc.dtype, DType::kFloat) << blob << layer.net;
    }
  }
}

// It only tells the shape.
TEST(ExactHostCallsTest, FilteredDataMayBeRounded) {
  const Net net(
      testing::ParseNet(InputTop("x", "3 2") + InputTop("selector", "3 1") +
                        "layer { name: 'y' type: 'Filter' bottom: 'x' bottom: 'selector' top: 'y' "
                        "}"),
      {.precision = BF16});
  EXPECT_EQ(net.graph().blobs.at("x")->desc.dtype, DType::kBFloat16);
  EXPECT_EQ(net.graph().blobs.at("y")->desc.dtype, DType::kBFloat16);
}

TEST(ExactHostCallsTest, CtcReadsLabelsAbove256) {
  constexpr int kSteps = 20, kClasses = 600;
  std::vector<float> scores(kSteps * kClasses), labels = {401, 403};
  for (int t = 0; t < kSteps; ++t) scores[t * kClasses + 401] = scores[t * kClasses + 403] = 5;
  const auto loss = [&](Precision precision) {
    Net net(testing::ParseNet(InputTop("s", "20 1 600") + InputTop("l", "1 2") +
                              "layer { name: 'y' type: 'WarpCTC' bottom: 's' bottom: 'l' top: "
                              "'y' }"),
            {.precision = precision});
    testing::Set(net, "s", scores);
    testing::Set(net, "l", labels);
    net.Forward();
    return net.blob_by_name("y")->cpu_data()[0];
  };
  for (const Precision precision : {BF16, FP16}) EXPECT_NEAR(loss(precision), loss(FP32), 1e-3);
}

}  // namespace
}  // namespace caffe
