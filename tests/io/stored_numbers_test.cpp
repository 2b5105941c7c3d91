#include "caffe/io/stored_numbers.hpp"

#include <gmock/gmock.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/binary_format.hpp"
#include "caffe/io/net_files.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using testing::ErrorText;
using ::testing::HasSubstr;

constexpr int kCount = 3000;

class StoredNumbersTest : public ::testing::Test {
 protected:
  StoredNumbersTest() {
    net_.set_name("net");
    LayerParameter* const layer = net_.add_layer();
    layer->set_name("ip");
    layer->set_type("InnerProduct");
    layer->mutable_inner_product_param()->set_num_output(3);
    weights_ = layer->add_blobs();
    weights_->mutable_shape()->add_dim(3);
    weights_->mutable_shape()->add_dim(kCount / 3);
    for (int i = 0; i < kCount; ++i) weights_->add_data(0.1F * static_cast<float>(i));
    BlobProto* const bias = layer->add_blobs();
    bias->mutable_shape()->add_dim(3);
    for (int i = 0; i < 3; ++i) bias->add_data(static_cast<float>(i));
  }

  std::string Write() const {
    WriteBinaryProto(file_, net_);
    return file_;
  }
  template <typename T = float>
  static std::vector<T> Values(const Origin& origin, int64_t first = 0, int64_t count = kCount) {
    std::vector<T> values(static_cast<size_t>(count));
    origin.Read(first, count, kDTypeOf<T>, values.data());
    return values;
  }
  static std::shared_ptr<const Origin> OriginIn(const WeightsInFile& weights) {
    return weights.OriginOf(weights.net.layer(0).blobs(0));
  }
  std::vector<float> expected() const { return {weights_->data().begin(), weights_->data().end()}; }

  testing::TemporaryFolder folder_;
  const std::string file_ = folder_.path("net.caffemodel");
  NetParameter net_;
  BlobProto* weights_ = nullptr;
};

TEST_F(StoredNumbersTest, LargeBlobsStayInTheFile) {
  const WeightsInFile weights = ReadWeights(Write());
  const LayerParameter& layer = weights.net.layer(0);
  EXPECT_EQ(layer.blobs(0).data_size(), 0);
  EXPECT_EQ(layer.blobs(0).shape().dim(1), kCount / 3);
  EXPECT_EQ(layer.blobs(1).data_size(), 3);
  EXPECT_EQ(weights.OriginOf(layer.blobs(1)), nullptr);
  EXPECT_EQ(layer.inner_product_param().num_output(), 3U);
  EXPECT_LT(weights.net.ByteSizeLong(), 200U);
  const auto origin = OriginIn(weights);
  ASSERT_NE(origin, nullptr);
  EXPECT_EQ(Values(*origin), expected());
  EXPECT_EQ(Values(*origin, 70, 2), (std::vector<float>{expected()[70], expected()[71]}));
  EXPECT_EQ(Values<double>(*origin)[7], static_cast<double>(expected()[7]));
}

TEST_F(StoredNumbersTest, GradientsAreLeftOut) {
  for (int i = 0; i < kCount; ++i) weights_->add_diff(1);
  const WeightsInFile weights = ReadWeights(Write());
  EXPECT_EQ(weights.net.layer(0).blobs(0).diff_size(), 0);
  EXPECT_EQ(Values(*OriginIn(weights)), expected());
}

TEST_F(StoredNumbersTest, ReadsDoublesAndRawValues) {
  const std::vector<float> floats = expected();
  weights_->clear_data();
  for (const float x : floats) weights_->add_double_data(x + 1e-9);
  EXPECT_EQ(Values<double>(*OriginIn(ReadWeights(Write())))[9], floats[9] + 1e-9);
  EXPECT_EQ(Values(*OriginIn(ReadWeights(Write())))[9], static_cast<float>(floats[9] + 1e-9));
  weights_->clear_double_data();
  std::vector<float16> halves(floats.begin(), floats.end());
  weights_->set_raw_data_type(FLOAT16);
  weights_->set_raw_data(halves.data(), halves.size() * sizeof(float16));
  EXPECT_EQ(Values(*OriginIn(ReadWeights(Write())))[9], static_cast<float>(halves[9]));
}

TEST_F(StoredNumbersTest, ReadsOldLayers) {
  V1LayerParameter* const old = net_.add_layers();
  old->set_name("ip");
  old->set_type(V1LayerParameter::INNER_PRODUCT);
  *old->mutable_blobs() = net_.layer(0).blobs();
  const std::vector<float> floats = expected();
  net_.clear_layer();
  const WeightsInFile weights = ReadWeights(Write());
  EXPECT_EQ(weights.net.layer(0).name(), "ip");
  EXPECT_EQ(Values(*OriginIn(weights)), floats);
}

// Protobuf joins the pieces, so they are not a single region of the file.
TEST_F(StoredNumbersTest, NumbersInPiecesAreReadIntoTheMessage) {
  const std::string blob = weights_->SerializeAsString() + weights_->SerializeAsString();
  const auto field = [](int number, const std::string& message) {
    std::string text;
    google::protobuf::io::StringOutputStream stream(&text);
    google::protobuf::io::CodedOutputStream output(&stream);
    output.WriteTag(static_cast<uint32_t>(number) << 3 | 2U);
    output.WriteVarint32(static_cast<uint32_t>(message.size()));
    output.WriteString(message);
    output.Trim();
    return text;
  };
  WriteFileAtomically(file_, field(100, field(7, blob)));
  const WeightsInFile weights = ReadWeights(file_);
  EXPECT_EQ(OriginIn(weights), nullptr);
  EXPECT_EQ(weights.net.layer(0).blobs(0).data_size(), 2 * kCount);
}

TEST_F(StoredNumbersTest, AReplacedOrDeletedFileIsStillRead) {
  const WeightsInFile weights = ReadWeights(Write());
  weights_->set_data(0, 5);
  Write();
  EXPECT_EQ(Values(*OriginIn(weights))[0], 0);
  std::filesystem::remove(file_);
  EXPECT_EQ(Values(*OriginIn(weights))[1], 0.1F);
}

TEST_F(StoredNumbersTest, AFileThatWasOverwrittenIsAnError) {
  const WeightsInFile weights = ReadWeights(Write());
  const auto size = std::filesystem::file_size(file_);
  std::ofstream(file_, std::ios::app | std::ios::binary) << "more";
  EXPECT_THAT(ErrorText<IoError>([&] { Values(*OriginIn(weights)); }),
              AllOf(HasSubstr(file_ + ": was changed while a net reads its weights from it"),
                    HasSubstr(StrCat(size, " bytes then, ", size + 4, " now")),
                    HasSubstr("load the weights again")));
}

TEST_F(StoredNumbersTest, AWrongNumberOfValuesIsAnError) {
  weights_->mutable_shape()->set_dim(0, 4);
  const WeightsInFile weights = ReadWeights(Write());
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { OriginIn(weights); }),
              HasSubstr("blob has 3000 values but its shape 4x1000 needs 4000"));
}

TEST_F(StoredNumbersTest, ErrorsAreThoseOfTheWholeMessage) {
  const std::string bytes = net_.SerializeAsString();
  for (const std::string& wrong : {bytes.substr(0, bytes.size() / 2), std::string("text"),
                                   std::string("\x89HDF\r\n\x1a\n more"), std::string()}) {
    WriteFileAtomically(file_, wrong);
    EXPECT_EQ(ErrorText<IoError>([&] { ReadWeights(file_); }),
              ErrorText<IoError>([&] { ReadNetBinary(file_); }));
  }
  EXPECT_EQ(ErrorText<IoError>([&] { ReadWeights("/nowhere/net.caffemodel"); }),
            ErrorText<IoError>([&] { ReadNetBinary("/nowhere/net.caffemodel"); }));
}

int OpenDescriptors() {
  const std::filesystem::directory_iterator descriptors("/proc/self/fd");
  return static_cast<int>(std::distance(begin(descriptors), end(descriptors)));
}

TEST_F(StoredNumbersTest, AFileIsHeldOpenOnce) {
  Write();
  std::vector<WeightsInFile> nets = {ReadWeights(file_)};
  const int before = OpenDescriptors();
  for (int i = 0; i < 20; ++i) nets.push_back(ReadWeights(file_));
  EXPECT_EQ(OpenDescriptors(), before);
  const std::shared_ptr<const Origin> last = OriginIn(nets.back());
  nets.clear();
  EXPECT_EQ(Values(*last), expected());
}

TEST_F(StoredNumbersTest, AFileThatTookThePlaceOfAnotherIsReadByItself) {
  Write();
  const WeightsInFile first = ReadWeights(file_);
  const std::vector<float> old = expected();
  weights_->set_data(7, 99);
  std::filesystem::rename(file_, folder_.path("old.caffemodel"));
  Write();
  const WeightsInFile second = ReadWeights(file_);
  EXPECT_EQ(Values(*OriginIn(first)), old);
  EXPECT_EQ(Values(*OriginIn(second)), expected());
}

}  // namespace
}  // namespace caffe
