#include "caffe/io/json.hpp"

#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <limits>

namespace caffe {
namespace {

TEST(JsonTest, IsReadBackAsItWas) {
  JsonObject object;
  PutJson(&object, "text", "a \"b\"\n\\");
  PutJson(&object, "number", 1.5f);
  PutJson(&object, "flag", true);
  PutJson(&object, "none", std::numeric_limits<double>::quiet_NaN());
  MakeJsonList(&object, "empty");
  AddJson(&object, "names", "x");
  PutJson(AddJson(&object, "layers"), "count", int64_t{7});

  JsonObject read;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(FormatJson(object), &read).ok())
      << FormatJson(object);
  EXPECT_EQ(read.fields().at("text").string_value(), "a \"b\"\n\\");
  EXPECT_EQ(read.fields().at("number").number_value(), 1.5);
  EXPECT_TRUE(read.fields().at("flag").bool_value());
  EXPECT_TRUE(read.fields().at("none").has_null_value());
  EXPECT_EQ(read.fields().at("empty").list_value().values_size(), 0);
  EXPECT_EQ(read.fields().at("names").list_value().values(0).string_value(), "x");
  const google::protobuf::Value& layer = read.fields().at("layers").list_value().values(0);
  EXPECT_EQ(layer.struct_value().fields().at("count").number_value(), 7);
}

TEST(JsonTest, KeysAreInAlphabeticalOrder) {
  JsonObject object;
  for (const char* key : {"score", "class", "name", "width", "height", "a\"b"}) {
    PutJson(&object, key, 0.5);
  }
  PutJson(AddJson(&object, "list"), "y", "text");
  AddJson(&object, "list", 7);
  MakeJsonList(&object, "none");
  JsonField(&object, "object");
  EXPECT_EQ(FormatJson(object),
            "{\n \"a\\\"b\": 0.5,\n \"class\": 0.5,\n \"height\": 0.5,\n \"list\": [\n  {\n"
            "   \"y\": \"text\"\n  },\n  7\n ],\n \"name\": 0.5,\n \"none\": [],\n"
            " \"object\": {},\n \"score\": 0.5,\n \"width\": 0.5\n}\n");
}

// Two names that differ in such bytes stay different.
TEST(JsonTest, NamesNeedNotBeUtf8) {
  JsonObject object;
  PutJson(AddJson(&object, "layers"), "name\xe9", "d\xe9");
  PutJson(AddJson(&object, "layers"), "name\xe8", "d\xe8");
  JsonObject read;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(FormatJson(object), &read).ok());
  const auto& layers = read.fields().at("layers").list_value().values();
  EXPECT_EQ(layers[0].struct_value().fields().at("name\\xe9").string_value(), "d\\xe9");
  EXPECT_EQ(layers[1].struct_value().fields().at("name\\xe8").string_value(), "d\\xe8");
}

}  // namespace
}  // namespace caffe
