#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "caffe/data/readers/leveldb_reader.hpp"
#include "caffe/error.hpp"
#include "tests/data/batches.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe::data {
namespace {

using testing::ErrorText;
using ::testing::HasSubstr;

class LevelDbTest : public ::testing::Test {
 protected:
  // Records 0, 1, ...: a Datum of one byte and its label.
  void Fill(int count) {
    const auto writer = CreateRecordWriter(DataParameter::LEVELDB, path_);
    for (int i = 0; i < count; ++i) {
      Datum datum;
      datum.set_channels(1);
      datum.set_height(1);
      datum.set_width(1);
      datum.set_data(std::string(1, static_cast<char>(i)));
      datum.set_label(i);
      writer->Put(StrCat(1000 + i), datum.SerializeAsString());
    }
    writer->Finish();
  }

  const caffe::testing::TemporaryFolder folder_;
  const std::string path_ = folder_.path("db");
};

TEST_F(LevelDbTest, GivesRecordsInKeyOrder) {
  Fill(3);
  const auto reader = OpenLevelDbReader(path_);
  const auto other = OpenLevelDbReader(path_ + "/.");  // at the same time
  EXPECT_EQ(reader->count(), 3u);
  Record first, record;
  ASSERT_TRUE(reader->First(&first));
  ASSERT_TRUE(reader->Next(&record));
  EXPECT_EQ(first.key, "1000");  // still valid
  EXPECT_EQ(record.key, "1001");
  ASSERT_TRUE(reader->Next(&record));
  EXPECT_FALSE(reader->Next(&record));
  ASSERT_TRUE(other->Seek("1002", &record));
  EXPECT_FALSE(other->Seek("1003", &record));
}

TEST_F(LevelDbTest, FeedsBatches) {
  Fill(5);
  for (const bool shuffle : {false, true}) {
    DataParameter data;
    data.set_source(path_);
    data.set_batch_size(4);
    data.set_shuffle(shuffle);
    data.set_threads(2);
    const BatchSourceOptions options{.train = true, .seed = 3, .layer = "data"};
    BatchSource source(MakeDatumSource(data, options), options);
    for (int pass = 0; pass < 5; ++pass) {
      const Batch& batch = source.Next();
      for (int i = 0; i < 4; ++i) EXPECT_EQ(batch.floats()[i], batch.labels[i]);
      if (!shuffle) {
        EXPECT_EQ(batch.labels[0], pass * 4 % 5);
      }
    }
  }
}

TEST_F(LevelDbTest, ExplainsWhatIsWrong) {
  EXPECT_THAT(ErrorText<IoError>([&] { OpenRecordReader(DataParameter::LEVELDB, path_); }),
              HasSubstr("no LMDB or LevelDB database here"));
  Fill(1);
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { CreateLevelDbWriter(path_); }),
              HasSubstr("already exists"));
  std::ofstream(path_ + "/CURRENT") << "nonsense";
  EXPECT_THAT(ErrorText<IoError>([&] { OpenLevelDbReader(path_); }),
              HasSubstr("cannot open as LevelDB"));
}

// Once, bytes that had changed on disk were used in training, or left out: in the log of a new
// database, and in the table that its first opening creates from the log.
TEST_F(LevelDbTest, IssueChangedBytesAreAnError) {
  for (const std::string extension : {".log", ".ldb"}) {
    std::filesystem::remove_all(path_);
    Fill(100);
    if (extension == ".ldb") OpenLevelDbReader(path_);
    int changed = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      const auto bytes = static_cast<std::streamoff>(entry.file_size());
      if (entry.path().extension() != extension || bytes == 0) continue;
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(bytes / 2).put('!');
      ++changed;
    }
    ASSERT_GT(changed, 0) << extension;
    EXPECT_THAT(ErrorText<IoError>([&] { OpenLevelDbReader(path_); }), HasSubstr("Corruption"));
  }
}

TEST_F(LevelDbTest, UnfinishedDatabaseIsRemoved) {
  CreateLevelDbWriter(path_)->Put("a", "first");
  EXPECT_FALSE(std::filesystem::exists(path_ + "/CURRENT"));
}

}  // namespace
}  // namespace caffe::data
