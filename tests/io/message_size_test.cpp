#include "caffe/io/message_size.hpp"

#include <gtest/gtest.h>

#include <string>

#include "caffe/proto/caffe.pb.h"

namespace caffe {
namespace {

uint64_t Measure(const std::string& bytes, const google::protobuf::Descriptor& type) {
  google::protobuf::io::CodedInputStream input(reinterpret_cast<const uint8_t*>(bytes.data()),
                                               static_cast<int>(bytes.size()));
  return ParsedBytes(&input, type);
}

std::string Repeat(const std::string& part, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += part;
  return text;
}

// Compares the size that protobuf reports for the parsed message with the size measured before.
template <typename M>
void ExpectRight(const std::string& bytes) {
  M message;
  ASSERT_TRUE(message.ParsePartialFromString(bytes));
  const auto taken = static_cast<double>(message.SpaceUsedLong());
  const auto measured = static_cast<double>(Measure(bytes, *M::descriptor()));
  EXPECT_GE(measured, 0.45 * taken);  // arrays grow by doubling
  EXPECT_LE(measured, 1.6 * taken);
}

TEST(MessageSizeTest, EmptyMessages) {
  ExpectRight<NetParameter>(Repeat("\xa2\x06" + std::string(1, '\0'), 3000));
}

TEST(MessageSizeTest, Weights) {
  NetParameter net;
  for (int i = 0; i < 20; ++i) {
    LayerParameter* layer = net.add_layer();
    layer->set_name("a layer with a name that is long enough to be allocated " + std::to_string(i));
    layer->mutable_convolution_param()->add_kernel_size(3);
    BlobProto* blob = layer->add_blobs();
    blob->mutable_shape()->add_dim(1000);
    for (int k = 0; k < 1000; ++k) blob->add_data(static_cast<float>(k));
  }
  ExpectRight<NetParameter>(net.SerializeAsString());
}

TEST(MessageSizeTest, StringsAndNumbersThatGrow) {
  NetParameter net;
  for (int i = 0; i < 3000; ++i) net.add_input("");
  ExpectRight<NetParameter>(net.SerializeAsString());
  BlobShape shape;
  for (int i = 0; i < 4096; ++i) shape.add_dim(1);
  ExpectRight<BlobShape>(shape.SerializeAsString());
}

TEST(MessageSizeTest, UnknownFieldsAndGroups) {
  ExpectRight<BlobProto>(Repeat("\xf2\x07" + std::string(1, '\0'), 4096));     // empty strings
  ExpectRight<BlobProto>(Repeat("\xf0\x07" + std::string(1, '\0'), 4096));     // numbers
  ExpectRight<BlobProto>(Repeat(std::string("\xf3\x07") + "\xf4\x07", 4096));  // groups
}

TEST(MessageSizeTest, EndsWhereTheBytesAreNoMessage) {
  const google::protobuf::Descriptor& type = *BlobProto::descriptor();
  const uint64_t empty = Measure("", type);
  EXPECT_GT(empty, 0u);
  EXPECT_EQ(Measure("\xff\xff\xff", type), empty);
  EXPECT_LT(Measure("\x2a\xff\xff\xff\xff\x07 and no more", type), (uint64_t{1} << 31) + 4096);
  std::string nested;  // beyond protobuf's depth
  for (int i = 0; i < 400; ++i) nested += "\xf3\x07";
  EXPECT_LT(Measure(nested, type), 400 * 256);
}

}  // namespace
}  // namespace caffe
