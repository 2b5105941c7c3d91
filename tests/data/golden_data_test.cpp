// Tops of data layers as the original Caffe computed them (tests/golden/README.md).
#include <gtest/gtest.h>

#include <algorithm>

#include "caffe/io/binary_format.hpp"
#include "caffe/io/blob_proto.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/io/upgrade_net.hpp"
#include "tests/data/batches.hpp"
#include "tests/data/databases.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe::data {
namespace {

using caffe::testing::ExpectClose;
using caffe::testing::NpyArray;
using caffe::testing::Npz;

std::vector<std::string> DataCases() {
  std::vector<std::string> cases;
  for (const std::string& path : caffe::testing::GoldenCases("data")) {
    const std::string name = path.substr(path.rfind('/') + 1);
    if (name.rfind("Data-", 0) == 0) cases.push_back(path);
  }
  return cases;
}

std::vector<std::string> RecordsOf(const Npz& npz) {
  const NpyArray& pixels = npz.at("datum.data");
  const std::vector<float> labels = npz.at("datum.label").floats();
  const int count = static_cast<int>(pixels.shape[0]);
  const size_t bytes = pixels.bytes.size() / count;
  std::vector<std::string> records;
  for (int i = 0; i < count; ++i) {
    Datum datum;
    datum.set_channels(static_cast<int>(pixels.shape[1]));
    datum.set_height(static_cast<int>(pixels.shape[2]));
    datum.set_width(static_cast<int>(pixels.shape[3]));
    datum.set_label(static_cast<int>(labels[i]));
    const std::string file = "png." + std::to_string(i);
    if (npz.has(file)) {
      datum.set_encoded(true);
      datum.set_data(npz.at(file).bytes);
    } else if (pixels.kind == 'f') {
      const std::vector<float> values = pixels.floats();
      const size_t size = values.size() / count;
      datum.mutable_float_data()->Add(values.begin() + i * size, values.begin() + (i + 1) * size);
    } else {
      datum.set_data(pixels.bytes.substr(i * bytes, bytes));
    }
    records.push_back(datum.SerializeAsString());
  }
  return records;
}

void Replace(const std::string& placeholder, const std::string& value, std::string* text) {
  const size_t at = text->find(placeholder);
  if (at != std::string::npos) text->replace(at, placeholder.size(), value);
}

class GoldenDataTest : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenDataTest, GivesTheTopsOfTheOriginal) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "protobuf's map fields have another layout under TSan than in the library";
#endif
  const Npz npz = Npz::Load(GetParam());
  const auto meta = caffe::testing::MetaOf(npz);
  const caffe::testing::TemporaryFolder folder;
  WriteDatabase(folder.path("db"), RecordsOf(npz));
  std::string prototxt = npz.at("prototxt").text();
  Replace("@DB@", folder.path("db"), &prototxt);
  if (npz.has("file.MEAN")) {
    BlobProto mean;
    const NpyArray& values = npz.at("file.MEAN");
    WriteBlobFloats(Shape(values.shape), values.floats(), &mean);
    WriteBinaryProto(folder.path("mean"), mean);
    Replace("@MEAN@", folder.path("mean"), &prototxt);
  }
  NetParameter net;
  ParseTextProto(prototxt, GetParam(), &net);
  UpgradeNet(GetParam(), &net);
  ASSERT_EQ(net.layer_size(), 1);
  const LayerParameter& layer = net.layer(0);
  const bool with_label = layer.top_size() > 1;

  const BatchSourceOptions options{.transform = layer.transform_param(),
                                   .train = caffe::testing::Text(meta, "phase") == "TRAIN",
                                   .layer = layer.name(),
                                   .with_label = with_label};
  BatchSource source(MakeDatumSource(layer.data_param(), options), options);
  for (int pass = 0; pass < caffe::testing::Number(meta, "forward_passes"); ++pass) {
    const Batch& batch = source.Next();
    const std::string prefix = "out" + std::to_string(pass) + ".";
    const NpyArray& data = npz.at(prefix + "data");
    ASSERT_EQ(batch.data_shape, Shape(data.shape));
    const double rtol = caffe::testing::Number(meta, "rtol");
    const double atol = caffe::testing::Number(meta, "atol");
    ExpectClose("data", batch.floats(), data.floats(), rtol, atol);
    ASSERT_EQ(with_label, npz.has(prefix + "label"));
    if (!with_label) continue;
    ASSERT_EQ(batch.label_shape, Shape(npz.at(prefix + "label").shape));
    ExpectClose("label", batch.labels, npz.at(prefix + "label").floats(), 0, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenDataTest, ::testing::ValuesIn(DataCases()),
                         [](const auto& info) { return caffe::testing::TestNameOf(info.param); });

}  // namespace
}  // namespace caffe::data
