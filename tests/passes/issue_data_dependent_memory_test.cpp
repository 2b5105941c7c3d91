// A layer whose tops' shape depends on data reads conversions of its bottoms. When the shape turned
// out to be different, the conversion of the second bottom had overwritten the first bottom, which
// the new plan converted again.
#include <gtest/gtest.h>

#include <vector>

#include "caffe/blob.hpp"
#include "caffe/net.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

constexpr char kNet[] = R"(
    layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 4 dim: 3 dim: 2 dim: 6 } } }
    layer { name: 'select' type: 'Input' top: 'select' input_param { shape { dim: 4 } } }
    layer { name: 'a' type: 'Convolution' bottom: 'x' top: 'a'
            convolution_param { num_output: 7 kernel_size: 1 weight_filler { type: 'xavier' } } }
    layer { name: 'b' type: 'Swish' bottom: 'a' top: 'b' }
    layer { name: 'filter' type: 'Filter' bottom: 'b' bottom: 'a' bottom: 'select'
            top: 'some_b' top: 'some_a' })";

std::vector<float> RunNet(bool keep_all, const std::string& name) {
  Net net(testing::ParseNet(kNet), {.keep_all = keep_all, .seed = 3});
  Blob &x = *net.blob_by_name("x"), &select = *net.blob_by_name("select");
  for (int64_t i = 0; i < x.count(); ++i)
    x.mutable_cpu_data()[i] = static_cast<float>(i * 37 % 11 - 5);
  for (int64_t i = 0; i < select.count(); ++i) select.mutable_cpu_data()[i] = i == 1 ? 0.f : 1.f;
  net.Forward();
  const Blob& top = *net.blob_by_name(name);
  return {top.cpu_data(), top.cpu_data() + top.count()};
}

TEST(IssueDataDependentMemoryTest, ABottomOutlivesTheConversionsOfTheOthers) {
  for (const char* top : {"some_a", "some_b"}) {
    const std::vector<float> kept = RunNet(true, top), reused = RunNet(false, top);
    ASSERT_EQ(reused.size(), kept.size()) << top;
    for (size_t i = 0; i < kept.size(); ++i) EXPECT_NEAR(reused[i], kept[i], 1e-5) << top << i;
  }
}

}  // namespace
}  // namespace caffe
