#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "caffe/data/readers/lmdb_reader.hpp"
#include "caffe/data/readers/lmdb_writer.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe::data {
namespace {

using ::testing::AllOf;
using testing::ErrorText;
using ::testing::HasSubstr;

TEST(LmdbTest, GivesRecordsInKeyOrder) {
  const caffe::testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/db";
  const auto writer = CreateLmdbWriter(path);
  writer->Put("b", "second");
  writer->Put("a", "first");
  writer->Finish();

  const auto reader = OpenLmdbReader(path);
  EXPECT_EQ(reader->count(), 2u);
  Record record;
  ASSERT_TRUE(reader->First(&record));
  EXPECT_EQ(record.value, "first");
  ASSERT_TRUE(reader->Next(&record));
  EXPECT_EQ(record.key, "b");
  EXPECT_FALSE(reader->Next(&record));
  ASSERT_TRUE(reader->Seek("a", &record));
  EXPECT_EQ(record.value, "first");
  EXPECT_FALSE(reader->Seek("c", &record));
}

TEST(LmdbTest, SeveralReadersShareADatabase) {
  const caffe::testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/db";
  const auto writer = CreateLmdbWriter(path);
  writer->Put("a", "first");
  writer->Finish();

  auto one = OpenLmdbReader(path);
  const auto other = OpenLmdbReader(path + "/.");
  one.reset();
  Record record;
  ASSERT_TRUE(other->First(&record));
  EXPECT_EQ(record.value, "first");
}

TEST(LmdbTest, AThousandReadersShareADatabase) {
  const caffe::testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/db";
  const auto writer = CreateLmdbWriter(path);
  writer->Put("a", "first");
  writer->Finish();

  std::vector<std::unique_ptr<RecordReader>> readers;
  for (int i = 0; i < 1000; ++i) readers.push_back(OpenLmdbReader(path));
  Record record;
  ASSERT_TRUE(readers.back()->First(&record));
  EXPECT_EQ(record.value, "first");
}

TEST(LmdbTest, MapGrowsWithTheRecords) {
  const caffe::testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/db";
  const auto writer = CreateLmdbWriter(path, {.map_bytes = 1 << 16});
  for (int i = 0; i < 2500; ++i) writer->Put(StrCat(10000 + i), std::string(1000, 'x'));
  writer->Finish();
  EXPECT_EQ(OpenLmdbReader(path)->count(), 2500u);
}

TEST(LmdbTest, RefusesToWriteOverADatabase) {
  const caffe::testing::TemporaryFolder folder;
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { CreateLmdbWriter(folder.path()); }),
              HasSubstr(": already exists; remove it"));
}

TEST(LmdbTest, UnfinishedDatabaseIsRemoved) {
  const caffe::testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/db";
  CreateLmdbWriter(path)->Put("a", "first");
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(LmdbTest, MissingDatabaseIsNamed) {
  EXPECT_THAT(ErrorText<IoError>([] { OpenLmdbReader("/no/such/db"); }),
              HasSubstr("/no/such/db: no LMDB database here"));
}

class BrokenLmdbTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto writer = CreateLmdbWriter(path_);
    for (int i = 0; i < 100; ++i) writer->Put(StrCat(1000 + i), std::string(2000, 'x'));
    writer->Put("2000", std::string(9000, 'y'));
    writer->Finish();
  }
  void ExpectError(const char* message) {
    EXPECT_THAT(ErrorText<IoError>([&] { OpenLmdbReader(path_); }),
                AllOf(HasSubstr("data.mdb"), HasSubstr(message)));
  }

  const caffe::testing::TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/db";
  const std::string file_ = path_ + "/data.mdb";
};

TEST_F(BrokenLmdbTest, EmptyFile) {
  std::filesystem::resize_file(file_, 0);
  ExpectError("empty file");
}

TEST_F(BrokenLmdbTest, TruncatedFile) {
  const uintmax_t whole = std::filesystem::file_size(file_);
  std::filesystem::resize_file(file_, whole / 2);
  ExpectError("truncated");
  std::filesystem::resize_file(file_, whole / 2 + 100);
  ExpectError("truncated");
}

// Only the two header pages are left.
TEST_F(BrokenLmdbTest, HeaderAlone) {
  std::filesystem::resize_file(file_, 8192);
  ExpectError("truncated");
}

TEST_F(BrokenLmdbTest, NotLmdb) {
  std::ofstream(file_) << std::string(20000, 'z');
  EXPECT_THAT(ErrorText<IoError>([&] { OpenLmdbReader(path_); }), HasSubstr("LMDB"));
}

// Several levels of pages, and values that have their own pages.
TEST(LmdbTest, FindsEachOfManyRecords) {
  const caffe::testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/db";
  std::mt19937 random(1);
  std::map<std::string, std::string> wanted;
  const auto writer = CreateLmdbWriter(path);
  for (int i = 0; i < 20000; ++i) {
    const std::string key = StrCat(random() % 1'000'000), value(random() % 100, 'v');
    wanted[key] = i % 100 == 0 ? std::string(random() % 20000, 'w') : value;
    writer->Put(key, wanted[key]);
  }
  writer->Finish();
  const auto reader = OpenLmdbReader(path);
  ASSERT_EQ(reader->count(), wanted.size());
  Record record;
  bool found = reader->First(&record);
  for (const auto& [key, value] : wanted) {
    ASSERT_TRUE(found);
    ASSERT_EQ(record.key, key);
    ASSERT_EQ(record.value, value);
    found = reader->Next(&record);
  }
  EXPECT_FALSE(found);
  for (const auto& [key, value] : wanted) {
    ASSERT_TRUE(reader->Seek(key, &record));
    ASSERT_EQ(record.value, value);
    ASSERT_EQ(reader->Seek(key + "!", &record), wanted.count(key + "!") > 0);
  }
  ASSERT_TRUE(reader->Seek(std::next(wanted.begin(), 777)->first, &record));
  ASSERT_TRUE(reader->Next(&record));
  EXPECT_EQ(record.key, std::next(wanted.begin(), 778)->first);
}

// LMDB's own cursor would end the process on some of these pages.
TEST_F(BrokenLmdbTest, DamagedPagesAreErrors) {
  constexpr int kPage = 4096;
  const std::string whole = ReadFile(file_);
  std::mt19937 random(1);
  int errors = 0;
  for (int i = 0; i < 300; ++i) {
    std::string damaged = whole;
    for (int k = 0; k < 3; ++k) {
      const size_t page = random() % (whole.size() / kPage);
      const size_t within = random() % (random() % 2 ? 160 : kPage);
      damaged[page * kPage + within] = static_cast<char>(random() % 3 ? random() : -(random() % 2));
    }
    std::ofstream(file_, std::ios::binary) << damaged;
    try {
      const auto reader = OpenLmdbReader(path_);
      Record record;
      uint64_t left = reader->count() + 1, sum = 0;
      for (bool found = reader->First(&record); found && left > 0; found = reader->Next(&record)) {
        sum += std::accumulate(record.value.begin(), record.value.end(), sum);
        --left;
      }
      reader->Seek("1050", &record);
    } catch (const IoError& error) {
      ++errors;
      ASSERT_THAT(error.what(), HasSubstr(path_));
    }
  }
  EXPECT_GT(errors, 20);
}

TEST(LmdbTest, FilesTellTheBackend) {
  const caffe::testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/db";
  const auto writer = CreateRecordWriter(DataParameter::LMDB, path);
  writer->Put("a", "first");
  writer->Finish();
  EXPECT_EQ(OpenRecordReader(DataParameter::LEVELDB, path)->count(), 1u);
  EXPECT_THROW(ParseBackend("sqlite"), InvalidArgument);
}

}  // namespace
}  // namespace caffe::data
