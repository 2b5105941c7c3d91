#include "caffe/distributed/address.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"

namespace caffe {
namespace {

TEST(Address, IsReadAndWritten) {
  for (const char* const text : {"node1:29500", "10.0.0.1:1", "[fe80::1]:65535", "localhost:0"}) {
    EXPECT_EQ(ToText(ParseAddress(text)), text);
  }
  EXPECT_EQ(ParseAddress("[::1]:7").host, "::1");
}

TEST(Address, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"node1", "it has no port"},      {":29500", "it has no host"}, {"node1:", "its port"},
      {"node1:port", "its port"},       {"node1:65536", "its port"},  {"node1:-1", "its port"},
      {"fe80::1:29500", "in brackets"}, {"node1:29500x", "its port"}};
  for (const auto& [text, why] : cases) {
    try {
      ParseAddress(text);
      ADD_FAILURE() << text;
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr(why)) << text;
    }
  }
}

}  // namespace
}  // namespace caffe
