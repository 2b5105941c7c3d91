#include "caffe/graph/schema_comments.hpp"

#include <gtest/gtest.h>

namespace caffe {
namespace {

std::string CommentOn(const google::protobuf::Descriptor& message, const std::string& field) {
  return CommentOf(*message.FindFieldByName(field));
}

TEST(SchemaCommentsTest, AreWhatTheSchemaSays) {
  EXPECT_EQ(CommentOn(*ArgMaxParameter::descriptor(), "axis"),
            "axis to search along; without it, all but the first together");
  EXPECT_EQ(CommentOn(*ArgMaxParameter::descriptor(), "out_max_val"),
            "Also give the values: as second row without axis, instead of the indices with axis.");
}

TEST(SchemaCommentsTest, AreEmptyWhereThereAreNone) {
  EXPECT_EQ(CommentOn(*ArgMaxParameter::descriptor(), "top_k"), "");
}

}  // namespace
}  // namespace caffe
