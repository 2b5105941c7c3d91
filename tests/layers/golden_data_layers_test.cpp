// Compares data layers that read files, as nets, with the results of the original Caffe
// (tests/golden/README.md). The Data layer's own source is tested in tests/data.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "caffe/blob.hpp"
#include "caffe/io/hdf5_files.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using testing::ExpectClose;
using testing::NpyArray;
using testing::Npz;

std::vector<std::string> FileLayerCases() {
  std::vector<std::string> cases;
  for (const std::string& path : testing::GoldenCases("data")) {
    const std::string name = std::filesystem::path(path).filename();
    if (name.rfind("HDF5Data-", 0) == 0 || name.rfind("ImageData-", 0) == 0) cases.push_back(path);
  }
  return cases;
}

void ReplaceAll(const std::string& placeholder, const std::string& value, std::string* text) {
  for (size_t at; (at = text->find(placeholder)) != std::string::npos;) {
    text->replace(at, placeholder.size(), value);
  }
}

class GoldenFileLayerTest : public ::testing::TestWithParam<std::string> {
 protected:
  // Writes the case's files and the list that names them.
  void WriteFiles(const Npz& npz) {
    std::ofstream list(folder_.path("list.txt"));
    for (int i = 0; npz.has(StrCat("png.", i)); ++i) {
      std::ofstream(folder_.path(StrCat(i, ".png"))) << npz.at(StrCat("png.", i)).bytes;
      list << i << ".png " << npz.at(StrCat("label.", i)).floats()[0] << "\n";
    }
    for (int i = 0; npz.has(StrCat("h5.", i, ".data")); ++i) {
      const std::string file = folder_.path(StrCat(i, ".h5"));
      Hdf5Writer writer(file);
      for (const char* name : {"data", "label"}) {
        const NpyArray& values = npz.at(StrCat("h5.", i, ".", name));
        writer.WriteFloats(name, Shape(values.shape), values.floats());
      }
      writer.Commit();
      list << file << "\n";
    }
  }

  const testing::TemporaryFolder folder_;
};

TEST_P(GoldenFileLayerTest, GivesTheTopsOfTheOriginal) {
  const Npz npz = Npz::Load(GetParam());
  const auto meta = testing::MetaOf(npz);
  WriteFiles(npz);
  std::string prototxt = npz.at("prototxt").text();
  ReplaceAll("@LIST@", folder_.path("list.txt"), &prototxt);
  ReplaceAll("@ROOT@", folder_.path(""), &prototxt);
  NetParameter param;
  ParseTextProto(prototxt, GetParam(), &param);
  param.mutable_state()->set_phase(testing::Text(meta, "phase") == "TRAIN" ? TRAIN : TEST);
  Net net(param);
  for (int pass = 0; pass < testing::Number(meta, "forward_passes"); ++pass) {
    net.Forward();
    for (const std::string& name : net.blob_names()) {
      const NpyArray& want = npz.at(StrCat("out", pass, ".", name));
      const Blob& blob = *net.blob_by_name(name);
      ASSERT_EQ(blob.shape(), Shape(want.shape));
      ExpectClose(name, blob.cpu_data<float>(), want.floats(), testing::Number(meta, "rtol"),
                  testing::Number(meta, "atol"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenFileLayerTest, ::testing::ValuesIn(FileLayerCases()),
                         [](const auto& info) { return testing::TestNameOf(info.param); });

}  // namespace
}  // namespace caffe
