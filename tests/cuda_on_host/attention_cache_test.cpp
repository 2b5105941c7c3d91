// Attention that keeps keys and values: on GPUs, too, rows move up within one memory.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/common.hpp"
#include "caffe/net.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

// The outputs of passes over 3, 1, 1 and 2 rows; the last one begins the second item again. The
// cache forgets the first rows.
std::vector<float> OutputsOfPasses() {
  Net net(testing::ParseNet(R"(
      state { phase: TEST }
      layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 dim: 8 } } }
      layer { name: 'cont' type: 'Input' top: 'cont' input_param { shape { dim: 2 } } }
      layer { name: 'attention' type: 'MultiHeadAttention' bottom: 'x' bottom: 'cont' top: 'y'
              attention_param { num_heads: 2 causal: true rotary_base: 100 cache_length: 4
                                weight_filler { type: 'gaussian' std: 0.5 } } })"),
          {.keep_all = false, .with_backward = false, .seed = 1});
  std::vector<float> outputs;
  int drawn = 0;
  for (const int rows : {3, 1, 1, 2}) {
    Blob& x = *net.input_blobs()[0];
    x.Reshape(Shape{2, rows, 8});
    for (int i = 0; i < 16 * rows; ++i)
      x.mutable_cpu_data<float>()[i] = std::sin(static_cast<float>(3 * drawn++));
    float* const cont = net.input_blobs()[1]->mutable_cpu_data<float>();
    cont[0] = drawn > 16 * rows ? 1 : 0;
    cont[1] = rows == 1 ? 1 : 0;
    const float* const y = net.Forward()[0]->cpu_data<float>();
    outputs.insert(outputs.end(), y, y + 16 * rows);
  }
  return outputs;
}

TEST(CudaAttentionCacheTest, GivesWhatTheProcessorGives) {
  const std::vector<float> wanted = OutputsOfPasses();
  Caffe::set_mode(Caffe::GPU);
  const std::vector<float> got = OutputsOfPasses();
  Caffe::set_mode(Caffe::CPU);
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5) << i;
}

}  // namespace
}  // namespace caffe
