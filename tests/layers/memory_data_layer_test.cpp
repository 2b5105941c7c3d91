#include "caffe/memory_data_layer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/folders.hpp"
#include "tests/support/golden.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using testing::Npz;
using ::testing::StrEq;

class MemoryDataLayerTest : public ::testing::Test {
 protected:
  MemoryDataLayerTest()
      : npz_(Npz::Load(testing::SourcePath("tests/golden/data/MemoryData-basic.npz"))) {
    ParseTextProto(npz_.at("prototxt").text(), "MemoryData-basic", &param_);
    param_.mutable_state()->set_phase(TEST);
  }

  static MemoryDataLayer& LayerOf(Net& net) {
    return dynamic_cast<MemoryDataLayer&>(*net.layers().front());
  }

  const Npz npz_;
  NetParameter param_;
};

TEST_F(MemoryDataLayerTest, DeliversBatchesInTurnAsCaffeDoes) {
  Net net(param_);
  const std::vector<float> data = npz_.at("memory.data").floats();
  const std::vector<float> labels = npz_.at("memory.label").floats();
  LayerOf(net).Reset(data.data(), labels.data(), static_cast<int64_t>(labels.size()));
  const auto meta = testing::MetaOf(npz_);
  for (int pass = 0; pass < testing::Number(meta, "forward_passes"); ++pass) {
    net.Forward();
    const std::string prefix = "out" + std::to_string(pass) + ".";
    for (const std::string& top : testing::KeysAfter(npz_, prefix)) {
      testing::ExpectClose(prefix + top, net.blob_by_name(top)->cpu_data(),
                           npz_.at(prefix + top).floats(), testing::Number(meta, "rtol"),
                           testing::Number(meta, "atol"));
    }
  }
}

TEST_F(MemoryDataLayerTest, RefusesPartsOfABatchAndForwardWithoutData) {
  Net net(param_);
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { net.Forward(); }),
              StrEq("layer 'data' (MemoryData): has no data yet; call Reset() first, in Python "
                    "net.set_input_arrays()"));
  const float value = 0;
  try {
    LayerOf(net).Reset(&value, &value, 1);
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("1 items are not a positive multiple of batch_size"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(MemoryDataLayerTest, RefusesToAugment) {
  param_.mutable_layer(0)->mutable_transform_param()->mutable_random_resized_crop();
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { Net net(param_); }),
              StrEq("layer 'data' (MemoryData): transform_param { random_resized_crop } is for "
                    "images with one label each; this layer gives arrays as they are; use a Data "
                    "or ImageData layer"));
}

}  // namespace
}  // namespace caffe
