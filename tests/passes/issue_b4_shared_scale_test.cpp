// Scale parameters shared by two normalisations, if one of them cannot include its Scale: the first
// writer of their gradient changed after it had been decided who overwrites and who adds.
#include <gtest/gtest.h>

#include "caffe/blob.hpp"
#include "caffe/net.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

std::string Conv(const std::string& name, const std::string& bottom) {
  return "layer { name: '" + name + "' type: 'Convolution' bottom: '" + bottom + "' top: '" + name +
         "' convolution_param { num_output: 3 kernel_size: 1 weight_filler { type: 'gaussian' std: "
         "0.5 } } } ";
}

std::string ScaleOf(const std::string& name, const std::string& bottom) {
  return "layer { name: '" + name + "' type: 'Scale' bottom: '" + bottom + "' top: '" + name +
         "' param { name: 'g' } param { name: 'b' } scale_param { bias_term: true } } ";
}

TEST(IssueB4Test, GradientsOfASharedScaleAddUp) {
  const NetParameter param = testing::ParseNet(
      "layer { name: 'data' type: 'DummyData' top: 'data' top: 'target' dummy_data_param { "
      "shape { dim: 4 dim: 3 dim: 5 dim: 5 } shape { dim: 4 dim: 3 dim: 5 dim: 5 } "
      "data_filler { type: 'gaussian' } data_filler { type: 'gaussian' } } } " +
      Conv("c1", "data") + Conv("c2", "data") +
      "layer { name: 'n1' type: 'BatchNorm' bottom: 'c1' top: 'n1' } "
      "layer { name: 'n2' type: 'BatchNorm' bottom: 'c2' top: 'n2' } " +
      ScaleOf("s1", "n1") + ScaleOf("s2", "n2") + Conv("d1", "s1") + Conv("d2", "s2") +
      Conv("d3", "n1") +  // n1 has two readers
      "layer { name: 'l1' type: 'EuclideanLoss' bottom: 'd1' bottom: 'target' top: 'l1' } "
      "layer { name: 'l2' type: 'EuclideanLoss' bottom: 'd2' bottom: 'target' top: 'l2' } "
      "layer { name: 'l3' type: 'EuclideanLoss' bottom: 'd3' bottom: 'target' top: 'l3' } ");
  Net fused(param, {.keep_all = false, .seed = 1});
  Net plain(param, {.keep_all = false, .seed = 1, .disabled_passes = {"fuse-epilogues"}});
  for (int pass = 0; pass < 3; ++pass) {  // the first pass had nothing to lose
    EXPECT_NEAR(fused.ForwardBackward(), plain.ForwardBackward(), 1e-4);
    for (int k = 0; k < 2; ++k) {
      const Blob &a = *fused.layer_params("s1")[k], &b = *plain.layer_params("s1")[k];
      for (int i = 0; i < 3; ++i) EXPECT_NEAR(a.cpu_diff()[i], b.cpu_diff()[i], 1e-4) << pass;
    }
  }
}

}  // namespace
}  // namespace caffe
