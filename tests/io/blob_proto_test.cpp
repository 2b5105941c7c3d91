#include "caffe/io/blob_proto.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "tests/support/error_text.hpp"

namespace caffe {
namespace {

using ::testing::ElementsAre;
using testing::ErrorText;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(BlobProtoTest, TakesTheOldExtentsWhenAnyIsSet) {
  BlobProto blob;
  blob.set_num(1);
  blob.set_channels(3);
  blob.set_height(2);
  blob.set_width(5);
  EXPECT_EQ(ShapeOf(blob), (Shape{1, 3, 2, 5}));
}

TEST(BlobProtoTest, TakesTheShapeOtherwise) {
  BlobProto blob;
  EXPECT_EQ(ShapeOf(blob), Shape{});
  blob.mutable_shape()->add_dim(7);
  EXPECT_EQ(ShapeOf(blob), Shape{7});
}

TEST(BlobProtoTest, ReadsBackFloatsAndDoubles) {
  BlobProto blob;
  const std::vector<float> floats = {1.5f, -2, 3, 4, 5, 6};
  WriteBlobFloats(Shape{2, 3}, floats, &blob);
  EXPECT_EQ(blob.data_size(), 6);
  EXPECT_EQ(ReadBlobFloats(blob), floats);
  const std::vector<double> doubles = {0.1, 0.2};
  WriteBlobDoubles(Shape{2}, doubles, &blob);
  EXPECT_EQ(blob.data_size(), 0);
  EXPECT_EQ(ReadBlobDoubles(blob), doubles);
  EXPECT_THAT(ReadBlobFloats(blob), ElementsAre(0.1f, 0.2f));
}

TEST(BlobProtoTest, KeepsGradientsApartFromValues) {
  BlobProto blob;
  WriteBlobFloats(Shape{2}, std::vector<float>{1, 2}, &blob);
  EXPECT_THAT(ReadBlobFloats(blob, /*diff=*/true), IsEmpty());
  WriteBlobFloats(Shape{2}, std::vector<float>{3, 4}, &blob, /*diff=*/true);
  EXPECT_THAT(ReadBlobFloats(blob), ElementsAre(1, 2));
  EXPECT_THAT(ReadBlobFloats(blob, /*diff=*/true), ElementsAre(3, 4));
}

TEST(BlobProtoTest, PrefersDoubleDataThenDataThenRawData) {
  BlobProto blob;
  blob.mutable_shape()->add_dim(1);
  blob.set_raw_data_type(FLOAT16);
  blob.set_raw_data(std::string("\x00\x42", 2));
  EXPECT_THAT(ReadBlobFloats(blob), ElementsAre(3));
  blob.add_data(2);
  EXPECT_THAT(ReadBlobFloats(blob), ElementsAre(2));
  blob.add_double_data(1);
  EXPECT_THAT(ReadBlobFloats(blob), ElementsAre(1));
}

TEST(BlobProtoTest, ReadsEveryRawType) {
  BlobProto blob;
  blob.mutable_shape()->add_dim(1);
  const auto read = [&](Type type, const std::string& bytes) {
    blob.set_raw_data_type(type);
    blob.set_raw_data(bytes);
    return ReadBlobFloats(blob);
  };
  EXPECT_THAT(read(FLOAT16, std::string("\x00\xc1", 2)), ElementsAre(-2.5f));
  EXPECT_THAT(read(BFLOAT16, std::string("\x20\xc0", 2)), ElementsAre(-2.5f));
  EXPECT_THAT(read(FLOAT, std::string("\x00\x00\x20\xc0", 4)), ElementsAre(-2.5f));
  EXPECT_THAT(read(DOUBLE, std::string("\x00\x00\x00\x00\x00\x00\x04\xc0", 8)), ElementsAre(-2.5f));
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { read(INT, "1234"); }), HasSubstr("is INT"));
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { read(FLOAT, "12345"); }),
              HasSubstr("5 bytes of raw values, not a multiple of 4"));
}

TEST(BlobProtoTest, NamesBothCountsWhenTheyDiffer) {
  BlobProto blob;
  blob.mutable_shape()->add_dim(2);
  blob.mutable_shape()->add_dim(3);
  blob.add_data(1);
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { ReadBlobFloats(blob); }),
              HasSubstr("blob has 1 values but its shape 2x3 needs 6"));
  EXPECT_THAT(ErrorText<InvalidArgument>([&] {
                WriteBlobFloats(Shape{4}, std::vector<float>{1, 2}, &blob);
              }),
              HasSubstr("got 2 values for a blob of shape 4, which needs 4"));
}

}  // namespace
}  // namespace caffe
