#include "tests/support/embedded_rows.hpp"

#include <gtest/gtest.h>

#include "caffe/blob.hpp"
#include "caffe/net.hpp"
#include "tests/support/net_of.hpp"

namespace caffe::testing {

void ExpectRowsOfTheTable() {
  for (const Precision precision : {BF16, FP16, FP32, FP64}) {
    Net net(ParseNet(R"(
        state { phase: TEST }
        layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 3 } } }
        layer { name: 'embed' type: 'Embed' bottom: 'x' top: 'y'
                embed_param { num_output: 5 input_dim: 4 bias_term: false
                              weight_filler { type: 'uniform' min: -1 max: 1 } } })"),
            {.keep_all = false, .with_backward = false, .seed = 1, .precision = precision});
    float* const places = net.input_blobs()[0]->mutable_cpu_data<float>();
    places[0] = 3, places[1] = 0, places[2] = 3;
    const float* const rows = net.Forward()[0]->cpu_data<float>();
    const float* const table = net.layer_params("embed")[0]->cpu_data<float>();
    for (int i = 0; i < 15; ++i)
      EXPECT_NEAR(rows[i], table[static_cast<int>(places[i / 5]) * 5 + i % 5], 4e-3) << i;
  }
}

}  // namespace caffe::testing
