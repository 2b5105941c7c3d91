#include "caffe/data/readers/mixed_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "tests/data/batches.hpp"
#include "tests/data/databases.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe::data {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::ErrorText;
using ::testing::HasSubstr;

// Databases of records whose labels are 100, 101 and so on, 200, 201, ...
class MixedReaderTest : public ::testing::Test {
 protected:
  std::string Make(const std::string& name, int first_label, int count) {
    std::vector<std::string> records;
    for (int i = 0; i < count; ++i) {
      Datum datum = NumberedDatum(i, 1, 2, 2);
      datum.set_label(first_label + i);
      records.push_back(datum.SerializeAsString());
    }
    WriteDatabase(folder_.path(name), records);
    return folder_.path(name);
  }

  DatumOptions Options(const std::string& text) {
    DatumOptions options;
    options.train = true;
    options.seed = 7;
    options.layer = "data";
    ParseTextProto(text, "data_param", &options.data);
    options.data.set_backend(DataParameter::LMDB);
    options.data.set_source(folder_.path(options.data.source()));
    for (DataSource& more : *options.data.mutable_more())
      more.set_source(folder_.path(more.source()));
    return options;
  }

  static std::vector<int> Labels(const DatumOptions& options, int batches) {
    DatumBatches source(options);
    std::vector<int> labels;
    for (int i = 0; i < batches; ++i) {
      const Batch& batch = source.Next();
      labels.insert(labels.end(), batch.labels, batch.labels + batch.size);
    }
    return labels;
  }

  const caffe::testing::TemporaryFolder folder_;
  const std::string a_ = Make("a", 100, 4), b_ = Make("b", 200, 2);
};

TEST_F(MixedReaderTest, WithoutWeightsEachRecordIsUsedOnce) {
  const std::vector<int> labels =
      Labels(Options("source: 'a' batch_size: 6 more { source: 'b' }"), 2);
  EXPECT_THAT(labels, ElementsAre(100, 200, 101, 102, 201, 103, 100, 200, 101, 102, 201, 103));
}

TEST_F(MixedReaderTest, WeightsArePartsOfTheEpoch) {
  EXPECT_THAT(
      Labels(Options("source: 'a' weight: 0.5 batch_size: 8 more { source: 'b' weight: 0.5 }"), 1),
      ElementsAre(100, 200, 101, 201, 102, 200, 103, 201));
  // A weight may be below that of the number of records: the other database is repeated.
  EXPECT_THAT(
      Labels(Options("source: 'a' weight: 4 batch_size: 10 more { source: 'b' weight: 1 }"), 1),
      ElementsAre(100, 101, 200, 102, 103, 100, 101, 201, 102, 103));
}

TEST_F(MixedReaderTest, MixesManyDatabasesByTheirWeights) {
  std::string text = "source: 'a' weight: 1 batch_size: 50";
  for (int i = 1; i < 7; ++i) {
    Make(StrCat("part", i), 1000 * i, 5 + 3 * i);
    text += StrCat(" more { source: 'part", i, "' weight: ", i, " }");
  }
  const DatumOptions options = Options(text);
  const DatumBatches source(options);
  const auto epoch = static_cast<int>(source.stats().records_per_epoch);
  // 8 records of part1 with weight 1 need the longest epoch.
  EXPECT_EQ(epoch, 8 * (1 + 1 + 2 + 3 + 4 + 5 + 6));
  DatumOptions whole = options;
  whole.data.set_batch_size(epoch);
  std::map<int, int> uses;
  for (const int label : Labels(whole, 1)) ++uses[label];
  EXPECT_EQ(uses.size(), 4u + 8 + 11 + 14 + 17 + 20 + 23) << "each record at least once";
  for (const auto& [label, times] : uses) {
    const int part = label < 1000 ? 0 : label / 1000;
    const int records = part == 0 ? 4 : 5 + 3 * part, share = part == 0 ? 8 : 8 * part;
    EXPECT_GE(times, share / records) << label;
    EXPECT_LE(times, (share + records - 1) / records) << label;
  }
}

TEST_F(MixedReaderTest, ResumesInAnyOrder) {
  for (const char* order : {"", "shuffle: true", "shuffle: true cache: true", "rand_skip: 5"}) {
    DatumOptions options = Options(
        StrCat("source: 'a' weight: 2 batch_size: 3 more { source: 'b' weight: 3 } ", order));
    const std::vector<int> all = Labels(options, 12);
    for (const int batches : {1, 4, 7}) {
      options.start_record = 3 * static_cast<uint64_t>(batches);
      EXPECT_EQ(Labels(options, 12 - batches),
                std::vector<int>(all.begin() + 3 * batches, all.end()))
          << order << " from batch " << batches;
    }
  }
}

TEST_F(MixedReaderTest, RanksDivideTheMixture) {
  DatumOptions options = Options("source: 'a' batch_size: 6 shuffle: true more { source: 'b' }");
  const std::vector<int> all = Labels(options, 3);
  options.ranks = 2;
  options.data.set_batch_size(3);
  std::vector<std::vector<int>> of_ranks;
  for (options.rank = 0; options.rank < 2; ++options.rank) of_ranks.push_back(Labels(options, 3));
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(of_ranks[i % 2][i / 2], all[i]) << i;
}

TEST_F(MixedReaderTest, ScoresEachRecordOnce) {
  DatumOptions options = Options("source: 'a' batch_size: 6 more { source: 'b' }");
  options.train = false;
  options.whole_epochs = true;
  std::vector<int> labels = Labels(options, 1);
  std::ranges::sort(labels);
  EXPECT_THAT(labels, ElementsAre(100, 101, 102, 103, 200, 201));
}

TEST_F(MixedReaderTest, MixesFolders) {
  DatumOptions options = Options("source: 'x' batch_size: 4 shuffle: true more { source: 'y' }");
  options.data.set_backend(DataParameter::FOLDER);
  int number = 0;
  for (const char* file : {"x/cat/1.png", "x/dog/1.png", "y/cat/1.png", "y/dog/1.png"}) {
    const std::filesystem::path path = folder_.path(file);
    std::filesystem::create_directories(path.parent_path());
    const Image image{{3, 2, 2}, std::vector<uint8_t>(12, static_cast<uint8_t>(++number))};
    std::ofstream(path) << EncodeImage(image, "png");
  }
  DatumBatches source(options);
  const Batch& batch = source.Next();
  std::vector<float> seen;
  for (int i = 0; i < 4; ++i) seen.push_back(batch.floats()[12 * i]);
  std::ranges::sort(seen);
  EXPECT_THAT(seen, ElementsAre(1, 2, 3, 4));
}

TEST_F(MixedReaderTest, ABrokenRecordIsNamedAndReplacedWithinItsDatabase) {
  std::vector<std::string> records = NumberedRecords(3, 1, 2, 2);
  records[1] = EncodedRecord("no image", 201);
  WriteDatabase(folder_.path("broken"), records);
  const std::string both = "source: 'a' batch_size: 7 more { source: 'broken' }";
  EXPECT_THAT(ErrorText<IoError>([&] { Labels(Options(both), 1); }),
              HasSubstr(folder_.path("broken") + ": record '00000001'"));
  EXPECT_THAT(Labels(Options(both + " skip_broken: true"), 1),
              ElementsAre(100, 0, 101, 2, 102, 2, 103));
}

TEST_F(MixedReaderTest, RefusesWhatCannotBeMixed) {
  const auto refused = [&](const std::string& text) {
    return ErrorText<InvalidArgument>([&] { Labels(Options(text), 1); });
  };
  EXPECT_THAT(refused("source: 'a' batch_size: 1 more { source: 'b' weight: 1 }"),
              AllOf(HasSubstr(a_ + "' has no weight"), HasSubstr("to each database, or to none")));
  EXPECT_THAT(refused("source: 'a' weight: 1 batch_size: 1 more { source: 'b' }"),
              HasSubstr(b_ + "' has no weight"));
  for (const char* weight : {"0", "-1", "nan", "inf"}) {
    EXPECT_THAT(refused(StrCat("source: 'a' weight: 1 batch_size: 1 more { source: 'b' weight: ",
                               weight, " }")),
                AllOf(HasSubstr(b_), HasSubstr("give a positive number")));
  }
  EXPECT_THAT(refused("source: 'a' weight: 1 batch_size: 1 more { source: 'b' weight: 1e-9 }"),
              AllOf(HasSubstr("an epoch of 2e+09 records"), HasSubstr("more alike")));
  EXPECT_THAT(refused("source: 'a' weight: 1 batch_size: 1"), HasSubstr("no other database"));
  DatumOptions unnamed = Options("source: 'a' batch_size: 1 more { source: 'b' }");
  unnamed.data.mutable_more(0)->clear_source();
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { Labels(unnamed, 1); }),
              HasSubstr("more } has no source"));
  EXPECT_THAT(ErrorText<IoError>(
                  [&] { Labels(Options("source: 'a' batch_size: 1 more { source: 'none' }"), 1); }),
              HasSubstr(folder_.path("none")));
}

}  // namespace
}  // namespace caffe::data
