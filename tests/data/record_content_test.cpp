#include "caffe/data/record_content.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/data/sources/datum_source.hpp"
#include "tests/data/databases.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe::data {
namespace {

TEST(RecordContent, TellsDatabasesApart) {
  const caffe::testing::TemporaryFolder folder;
  const auto content_of = [&](const std::string& name, const std::vector<std::string>& records) {
    WriteDatabase(folder.path(name), records);
    DataParameter data;
    data.set_source(folder.path(name));
    data.set_backend(DataParameter::LMDB);
    data.set_batch_size(2);
    return ContentOf(*MakeDatumSource(data, {.layer = "data"}));
  };
  // Records of more than one page.
  std::vector<std::string> records = NumberedRecords(300, 3, 8, 8);
  const std::string content = content_of("one", records);
  EXPECT_THAT(content, ::testing::StartsWith(
                           "300 records, the first '00000000', the last '00000299', their hash "));
  EXPECT_EQ(content_of("copy", records), content);
  std::swap(records[3], records[4]);
  EXPECT_NE(content_of("other order", records), content);
  std::swap(records[3], records[4]);
  records.back() += "x";
  EXPECT_NE(content_of("other end", records), content);
  records = NumberedRecords(299, 3, 8, 8);
  EXPECT_NE(content_of("fewer", records), content);
}

}  // namespace
}  // namespace caffe::data
