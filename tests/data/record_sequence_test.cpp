#include "caffe/data/record_sequence.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "tests/support/error_text.hpp"

namespace caffe::data {
namespace {

using caffe::testing::ErrorText;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint64_t kEndless = ~uint64_t{0};

// A database that claims to have `count` records but has `held`.
class LyingReader final : public RecordReader {
 public:
  LyingReader(uint64_t count, uint64_t held) : count_(count), held_(held) {}

  uint64_t count() const override { return count_; }
  bool First(Record* record) override {
    next_ = 0;
    return Next(record);
  }
  bool Next(Record* record) override {
    if (next_ == held_) return false;
    if (held_ != kEndless) ++next_;
    *record = {.key = "key", .value = "value"};
    return true;
  }
  bool Seek(std::string_view, Record* record) override { return First(record); }
  uint64_t mapped_bytes() const override { return 4096; }

 private:
  const uint64_t count_, held_;
  uint64_t next_ = 0;
};

// The error text when a little more than an epoch is read.
std::string TextOf(uint64_t count, uint64_t held, bool shuffle) {
  return ErrorText<IoError>([&] {
    RecordSequence sequence({.source = "db",
                             .open = [=] { return std::make_unique<LyingReader>(count, held); },
                             .shuffle = shuffle});
    for (uint64_t i = 0; i < count + 2; ++i) sequence.Next();
  });
}

TEST(RecordSequenceTest, ReadsWhatIsThere) {
  for (const bool shuffle : {false, true}) {
    RecordSequence sequence({.source = "db",
                             .open = [] { return std::make_unique<LyingReader>(5, 5); },
                             .shuffle = shuffle});
    for (uint64_t i = 0; i < 17; ++i) EXPECT_EQ(sequence.Next().number, i);
  }
}

// Blocks of 2, 2 and 1 records in each epoch, which ranks take alternately. An order that is
// shuffled again has each record of an epoch once.
TEST(RecordSequenceTest, BlocksEndWithTheEpoch) {
  for (const bool shuffle : {false, true}) {
    RecordSequenceOptions options = {.source = "db",
                                     .open = [] { return std::make_unique<LyingReader>(5, 5); },
                                     .shuffle = shuffle,
                                     .ranks = 2,
                                     .block = 2,
                                     .whole_epochs = true};
    const auto numbers = [&](uint64_t rank) {
      options.rank = rank;
      RecordSequence sequence(options);
      std::vector<uint64_t> taken;
      for (int i = 0; i < 6; ++i) taken.push_back(sequence.Next().number);
      return taken;
    };
    EXPECT_EQ(numbers(0), (std::vector<uint64_t>{0, 1, 4, 7, 8, 10}));
    EXPECT_EQ(numbers(1), (std::vector<uint64_t>{2, 3, 5, 6, 9, 12}));
  }
}

// A database that gives any record, and counts how many it has read.
class IndexedReader final : public RecordReader {
 public:
  explicit IndexedReader(int* reads) : reads_(*reads) {}

  uint64_t count() const override { return 5; }
  bool First(Record* record) override { return At(0, record); }
  bool Next(Record* record) override { return At(position_ + 1, record); }
  bool Seek(std::string_view, Record*) override { return false; }
  bool has_index() const override { return true; }
  bool At(uint64_t index, Record* record) override {
    if (index >= count()) return false;
    ++reads_;
    position_ = index;
    *record = {.key = "key", .value = std::string_view("01234").substr(index, 1)};
    return true;
  }

 private:
  int& reads_;
  uint64_t position_ = 0;
};

// Neither the records of other ranks, nor those before a resumed run's, nor a whole epoch.
TEST(RecordSequenceTest, ReadsOnlyRecordsThatAreUsedIfThereIsAnIndex) {
  for (const bool shuffle : {false, true}) {
    int reads = 0;
    RecordSequence sequence({.source = "db",
                             .open = [&] { return std::make_unique<IndexedReader>(&reads); },
                             .shuffle = shuffle,
                             .start = 4,
                             .rank = 1,
                             .ranks = 2});
    EXPECT_EQ(reads, 0);
    std::vector<RecordSequence::Item> items;
    for (int i = 0; i < 5; ++i) items.push_back(sequence.Next());
    EXPECT_EQ(reads, 5);
    for (size_t i = 0; i < items.size(); ++i) {
      EXPECT_EQ(items[i].number, 5 + 2 * i);
      EXPECT_EQ(items[i].record.value, std::to_string(items[i].index));
      if (!shuffle) {
        EXPECT_EQ(items[i].index, (5 + 2 * i) % 5);
      }
    }
    EXPECT_EQ(sequence.After(items.front()).index, (items.front().index + 1) % 5);
  }
}

TEST(RecordSequenceTest, SaysThatRecordsAreMissing) {
  for (const bool shuffle : {false, true}) {
    EXPECT_THAT(TextOf(9, 4, shuffle),
                AllOf(HasSubstr("db: is damaged"), HasSubstr("has 9 records, and 4 can be found")));
  }
}

// Pages that form a cycle have no end.
TEST(RecordSequenceTest, SaysThatThereAreTooMany) {
  for (const bool shuffle : {false, true}) {
    EXPECT_THAT(TextOf(9, kEndless, shuffle),
                AllOf(HasSubstr("db: is damaged"), HasSubstr("more than 9 can be found")));
  }
}

TEST(RecordSequenceTest, TakesNoMemoryForACountThatCannotBe) {
  EXPECT_THAT(TextOf((uint64_t{1} << 32) - 1, 4, /*shuffle=*/true),
              HasSubstr("has 4294967295 records, and 4 can be found"));
}

}  // namespace
}  // namespace caffe::data
