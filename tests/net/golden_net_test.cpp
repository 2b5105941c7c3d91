// Golden cases of single layers and small nets: forward and backward of a keep-all net.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "caffe/io/binary_format.hpp"
#include "caffe/io/blob_proto.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/io/upgrade_net.hpp"
#include "caffe/net.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using testing::ExpectClose;
using testing::KeysAfter;
using testing::LayerAndIndex;
using testing::Npz;
using testing::Number;

void SetValues(const std::vector<float>& values, float* elements) {
  std::copy(values.begin(), values.end(), elements);
}

class GoldenNetTest : public ::testing::TestWithParam<std::string> {
 protected:
  // Writes the case's extra files and puts their paths into the prototxt.
  std::string PrototxtWithFiles(const Npz& npz) {
    std::string text = npz.at("prototxt").text();
    for (const std::string& name : KeysAfter(npz, "file.")) {
      const std::string path = folder_.path(name);
      const testing::NpyArray& array = npz.at("file." + name);
      BlobProto blob;
      WriteBlobFloats(Shape(array.shape), array.floats(), &blob);
      WriteBinaryProto(path, blob);
      for (size_t at; (at = text.find("@" + name)) != std::string::npos;) {
        const size_t length =
            text.compare(at + name.size() + 1, 1, "@") == 0 ? name.size() + 2 : name.size() + 1;
        text.replace(at, length, path);
      }
    }
    return text;
  }

  testing::TemporaryFolder folder_;
};

TEST_P(GoldenNetTest, AgreesWithBvlcCaffe) {
  const Npz npz = Npz::Load(GetParam());
  const std::string text = PrototxtWithFiles(npz);
  const std::string missing = testing::MissingLayerTypes(text);
  if (!missing.empty()) GTEST_SKIP() << "layer types not in this build: " << missing;
  const google::protobuf::Struct meta = testing::MetaOf(npz);
  const double rtol = Number(meta, "rtol", 1e-4), atol = Number(meta, "atol", 1e-5);

  NetParameter param;
  ParseTextProto(text, GetParam(), &param);
  UpgradeNet(GetParam(), &param);
  param.mutable_state()->set_phase(testing::Text(meta, "phase") == "TRAIN" ? TRAIN : TEST);
  param.mutable_state()->set_level(static_cast<int>(Number(meta, "level")));
  for (const std::string& stage : testing::Texts(meta, "stages"))
    param.mutable_state()->add_stage(stage);
  Net net(param, {.seed = 1});

  std::vector<std::string> outputs = testing::Texts(meta, "outputs");
  std::sort(outputs.begin(), outputs.end());
  EXPECT_EQ(net.output_names(), outputs);
  for (const std::string& layer : testing::Texts(meta, "layers"))
    EXPECT_TRUE(net.has_layer(layer)) << layer;

  for (const std::string& key : KeysAfter(npz, "param.")) {
    const auto [layer, index] = LayerAndIndex(key);
    Blob& blob = *net.layer_params(layer).at(index);
    ASSERT_EQ(blob.shape().dims(), npz.at("param." + key).shape) << key;
    SetValues(npz.at("param." + key).floats(), blob.mutable_cpu_data());
  }
  float loss = 0;
  for (int pass = 0; pass < Number(meta, "forward_passes", 1); ++pass) {
    for (const std::string& blob : KeysAfter(npz, "in.")) {
      SetValues(npz.at("in." + blob).floats(), net.blob_by_name(blob)->mutable_cpu_data());
    }
    net.Forward(&loss);
  }
  for (const std::string prefix : {"out.", "blob."}) {
    for (const std::string& blob : KeysAfter(npz, prefix)) {
      const auto want = npz.at(prefix + blob).floats();
      ASSERT_EQ(net.blob_by_name(blob)->count(), static_cast<int64_t>(want.size())) << blob;
      ExpectClose(prefix + blob, net.blob_by_name(blob)->cpu_data(), want, rtol, atol);
    }
  }
  for (const std::string& key : KeysAfter(npz, "paramafter.")) {
    const auto [layer, index] = LayerAndIndex(key);
    ExpectClose("paramafter." + key, net.layer_params(layer).at(index)->cpu_data(),
                npz.at("paramafter." + key).floats(), rtol, atol);
  }
  if (npz.has("loss")) ExpectClose("loss", &loss, npz.at("loss").floats(), rtol, atol);
  if (Number(meta, "backward", 1) == 0) return;

  net.ClearParamDiffs();
  for (int pass = 0; pass < Number(meta, "backward_passes", 1); ++pass) {
    for (const std::string& blob : KeysAfter(npz, "outdiff.")) {
      SetValues(npz.at("outdiff." + blob).floats(), net.blob_by_name(blob)->mutable_cpu_diff());
    }
    net.Backward();
  }
  for (const std::string& blob : KeysAfter(npz, "indiff.")) {
    ExpectClose("indiff." + blob, net.blob_by_name(blob)->cpu_diff(),
                npz.at("indiff." + blob).floats(), rtol, atol);
  }
  for (const std::string& key : KeysAfter(npz, "paramdiff.")) {
    const auto [layer, index] = LayerAndIndex(key);
    ExpectClose("paramdiff." + key, net.layer_params(layer).at(index)->cpu_diff(),
                npz.at("paramdiff." + key).floats(), rtol, atol);
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, GoldenNetTest, ::testing::ValuesIn(testing::GoldenCases("layers")),
                         [](const auto& info) { return testing::TestNameOf(info.param); });
INSTANTIATE_TEST_SUITE_P(Nets, GoldenNetTest, ::testing::ValuesIn(testing::GoldenCases("nets")),
                         [](const auto& info) { return testing::TestNameOf(info.param); });

}  // namespace
}  // namespace caffe
