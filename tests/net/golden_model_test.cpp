// Whole nets with parameters and input from a portable number rule (tests/golden/README.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "caffe/io/net_files.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/io/upgrade_net.hpp"
#include "caffe/net.hpp"
#include "tests/support/golden.hpp"

namespace caffe {
namespace {

using testing::KeysAfter;
using testing::Npz;
using testing::Number;

// Number i of stream `seed` in [0, 1), 24 bits: splitmix64 of a linear combination.
double RuleUniform(uint64_t seed, uint64_t i) {
  uint64_t z = seed * 0x9E3779B97F4A7C15u + (i + 1) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  z ^= z >> 31;
  return static_cast<double>(z >> 40) / 16777216.0;
}

void Fill(Blob& blob, uint64_t seed, double scale) {
  float* values = blob.mutable_cpu_data();
  for (int64_t i = 0; i < blob.count(); ++i) {
    values[i] = static_cast<float>((2 * RuleUniform(seed, static_cast<uint64_t>(i)) - 1) * scale);
  }
}

int FillByRule(Net& net, const google::protobuf::Struct& rule, Blob& input) {
  int k = 0;
  for (size_t layer = 0; layer < net.layers().size(); ++layer) {
    const auto& params = net.layer_params(static_cast<int>(layer));
    for (size_t i = 0; i < params.size(); ++i, ++k) {
      const double fan_in =
          static_cast<double>(params[i]->count()) / static_cast<double>(params[i]->shape(0));
      const double scale =
          i == 0 ? std::sqrt(3 * Number(rule, "gain") / std::floor(fan_in)) : Number(rule, "bias");
      Fill(*params[i], 1000 + static_cast<uint64_t>(k), scale);
    }
  }
  Fill(input, 1, Number(rule, "input_scale"));
  return k;
}

class GoldenModelTest : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenModelTest, AgreesWithBvlcCaffe) {
  const Npz npz = Npz::Load(GetParam());
  const google::protobuf::Struct meta = testing::MetaOf(npz);
  if (!npz.has("prototxt"))
    GTEST_SKIP() << "needs the model file " << testing::Text(meta, "model_file");
  NetParameter param;
  ParseTextProto(npz.at("prototxt").text(), GetParam(), &param);
  UpgradeNet(GetParam(), &param);
  param.mutable_state()->set_phase(TEST);
  Net net(param);
  Blob& input = *net.blob_by_name(testing::Text(meta, "input"));
  std::vector<int64_t> shape;
  for (const auto& dim : meta.fields().at("input_shape").list_value().values()) {
    shape.push_back(static_cast<int64_t>(dim.number_value()));
  }
  input.Reshape(Shape(shape));
  const int filled = FillByRule(net, meta.fields().at("rule").struct_value(), input);
  EXPECT_EQ(filled, Number(meta, "parameter_blobs"));
  net.Forward();
  for (const std::string& blob : KeysAfter(npz, "out.")) {
    testing::ExpectClose("out." + blob, net.blob_by_name(blob)->cpu_data(),
                         npz.at("out." + blob).floats(), Number(meta, "rtol", 1e-3),
                         Number(meta, "atol", 1e-6));
  }
  for (const std::string& blob : KeysAfter(npz, "blob.")) {
    testing::ExpectClose("blob." + blob, net.blob_by_name(blob)->cpu_data(),
                         npz.at("blob." + blob).floats(), Number(meta, "rtol", 1e-3),
                         Number(meta.fields().at("blob_atol").struct_value(), blob));
  }
  for (const std::string& name : KeysAfter(npz, "stats.")) {
    const Blob& blob = *net.blob_by_name(name);
    const std::vector<float> want = npz.at("stats." + name).floats();
    double sum = 0, magnitude = 0, least = HUGE_VAL, most = -HUGE_VAL;
    for (int64_t i = 0; i < blob.count(); ++i) {
      const double value = blob.cpu_data()[i];
      sum += value;
      magnitude += std::abs(value);
      least = std::min(least, value);
      most = std::max(most, value);
    }
    const double rtol = Number(meta, "stats_rtol");
    const double extreme = std::max(std::abs(want[2]), std::abs(want[3]));
    EXPECT_NEAR(sum, want[0], rtol * want[1]) << name;
    EXPECT_NEAR(magnitude, want[1], rtol * want[1]) << name;
    EXPECT_NEAR(least, want[2], rtol * extreme) << name;
    EXPECT_NEAR(most, want[3], rtol * extreme) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenModelTest,
                         ::testing::ValuesIn(testing::GoldenCases("models")),
                         [](const auto& info) { return testing::TestNameOf(info.param); });

}  // namespace
}  // namespace caffe
