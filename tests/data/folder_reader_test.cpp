#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/data/readers/record_reader.hpp"
#include "caffe/data/readers/record_writer.hpp"
#include "caffe/error.hpp"
#include "tests/data/batches.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe::data {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::ErrorText;
using ::testing::HasSubstr;
using ::testing::Not;

class FolderReaderTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& bytes) const {
    const fs::path path = folder_.path("photos/" + name);
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
  }
  // An image of 1x2x2 (channels x height x width), all of one value.
  static std::string Png(int value) {
    return EncodeImage({{1, 2, 2}, std::vector<uint8_t>(4, static_cast<uint8_t>(value))}, "png");
  }
  // Five images of the values 0 to 4 in two classes: label 0 has 0 and 1, label 1 has 2 to 4.
  void Photos() const {
    for (int i = 0; i < 5; ++i) Write(StrCat(i < 2 ? "cat/" : "dog/", i, ".png"), Png(i));
  }

  std::unique_ptr<RecordReader> Open() const {
    return OpenRecordReader(DataParameter::FOLDER, path_);
  }
  std::vector<std::string> Keys() const {
    const auto reader = Open();
    std::vector<std::string> keys;
    Record record;
    for (bool found = reader->First(&record); found; found = reader->Next(&record)) {
      keys.emplace_back(record.key);
    }
    EXPECT_EQ(reader->count(), keys.size());
    return keys;
  }

  DatumOptions Options() const {
    DatumOptions options;
    options.train = true;
    options.seed = 3;
    options.layer = "data";
    options.data.set_source(path_);
    options.data.set_backend(DataParameter::FOLDER);
    options.data.set_batch_size(1);
    return options;
  }
  // The first pixels of the next images; each label must be that of its image.
  static std::vector<int> Take(BatchSource* source, int count) {
    std::vector<int> values;
    for (int i = 0; i < count; ++i) {
      const Batch& batch = source->Next();
      for (int k = 0; k < batch.size; ++k) {
        values.push_back(static_cast<int>(batch.floats()[4 * k]));
        EXPECT_EQ(batch.labels[k], values.back() < 2 ? 0 : 1);
      }
    }
    return values;
  }
  std::string ErrorOfTraining(DatumOptions options, int batches = 6) const {
    return ErrorText<IoError>([&] {
      DatumBatches source(options);
      for (int i = 0; i < batches; ++i) source.Next();
    });
  }

  const caffe::testing::TemporaryFolder folder_;
  const std::string path_ = folder_.path("photos");
};

TEST_F(FolderReaderTest, GivesImagesInTheOrderOfTheirPaths) {
  Photos();
  Write("cat/deeper/9.png", Png(9));
  Write("cat-like/7.png", Png(7));
  EXPECT_THAT(Keys(), ElementsAre("cat-like/7.png", "cat/0.png", "cat/1.png", "cat/deeper/9.png",
                                  "dog/2.png", "dog/3.png", "dog/4.png"));
  const auto reader = Open();
  Record first, record;
  ASSERT_TRUE(reader->First(&first));
  ASSERT_TRUE(reader->Last(&record));
  EXPECT_FALSE(reader->Next(&record));
  Datum datum;
  ASSERT_TRUE(datum.ParseFromString(std::string(record.value)));
  EXPECT_TRUE(datum.encoded());
  EXPECT_EQ(datum.data(), Png(4));
  EXPECT_EQ(datum.label(), 2);             // after "cat" and "cat-like"
  EXPECT_EQ(first.key, "cat-like/7.png");  // still valid
  ASSERT_TRUE(datum.ParseFromString(std::string(first.value)));
  EXPECT_EQ(datum.label(), 1);
  ASSERT_TRUE(reader->Seek("cat/1.png", &record));
  ASSERT_TRUE(reader->Next(&record));
  EXPECT_EQ(record.key, "cat/deeper/9.png");
  EXPECT_FALSE(reader->Seek("cat/2.png", &record));
  ASSERT_TRUE(reader->At(1, &record));
  EXPECT_EQ(record.key, "cat/0.png");
  EXPECT_FALSE(reader->At(7, &record));
}

TEST_F(FolderReaderTest, EachRecordComesOnceInAnEpoch) {
  Photos();
  for (const bool shuffle : {false, true}) {
    DatumOptions options = Options();
    options.data.set_shuffle(shuffle);
    options.data.set_batch_size(5);
    options.data.set_parser_threads(3);
    options.data.set_threads(3);
    DatumBatches source(options);
    std::vector<std::vector<int>> epochs;
    for (int epoch = 0; epoch < 4; ++epoch) {
      epochs.push_back(Take(&source, 1));
      EXPECT_THAT(epochs.back(), ::testing::UnorderedElementsAre(0, 1, 2, 3, 4));
    }
    EXPECT_EQ(epochs[0] == epochs[1] && epochs[1] == epochs[2], !shuffle);
  }
}

TEST_F(FolderReaderTest, RanksShareAnEpoch) {
  Photos();
  for (const bool shuffle : {false, true}) {
    DatumOptions options = Options();
    options.data.set_shuffle(shuffle);
    options.ranks = 2;
    std::vector<int> all;
    for (options.rank = 0; options.rank < 2; ++options.rank) {
      DatumBatches source(options);
      const std::vector<int> own = Take(&source, 5);
      all.insert(all.end(), own.begin(), own.end());
    }
    EXPECT_THAT(all, ::testing::UnorderedElementsAre(0, 0, 1, 1, 2, 2, 3, 3, 4, 4));
  }
}

TEST_F(FolderReaderTest, ResumesExactly) {
  Photos();
  for (const bool shuffle : {false, true}) {
    DatumOptions options = Options();
    options.data.set_shuffle(shuffle);
    DatumBatches source(options);
    Take(&source, 7);
    options.start_record = source.records_consumed();
    DatumBatches resumed(options);
    EXPECT_EQ(Take(&resumed, 9), Take(&source, 9));
    EXPECT_THAT(resumed.content(), HasSubstr("5 records, the first 'cat/0.png', the last "
                                             "'dog/4.png'"));
  }
}

// A record that is not used is not read: other ranks use it, or it comes later in the order.
TEST_F(FolderReaderTest, ReadsOnlyRecordsThatAreUsed) {
  Photos();
  const auto open = Open();  // keeps the list
  fs::remove(folder_.path("photos/dog/4.png"));
  RecordSequence sequence({.source = path_,
                           .open = [this] { return Open(); },
                           .shuffle = true,
                           .seed = 1,
                           .stream = "data"});
  int found = 0;
  const std::string error = ErrorText<IoError>([&] {
    for (;; ++found) sequence.Next();
  });
  EXPECT_THAT(error, HasSubstr("photos/dog/4.png: cannot open: No such file"));
  EXPECT_GT(found, 0);
}

TEST_F(FolderReaderTest, ErrorsNameTheFile) {
  Photos();
  Write("cat/torn.png", Png(0).substr(0, 50));
  EXPECT_THAT(ErrorOfTraining(Options()), HasSubstr("photos: record 2 ('cat/torn.png'): "));
  DatumOptions options = Options();
  options.data.set_skip_broken(true);
  DatumBatches source(options);
  EXPECT_THAT(Take(&source, 6), ElementsAre(0, 1, 2, 2, 3, 4));
  EXPECT_GE(source.stats().broken_records, 1u);  // more if the next epoch has begun
}

TEST_F(FolderReaderTest, AFileThatCannotBeOpenedIsAnError) {
  Photos();
  fs::create_symlink("nowhere.png", folder_.path("photos/cat/link.png"));
  EXPECT_THAT(ErrorText<IoError>([&] { Open(); }),
              HasSubstr("photos/cat/link.png: cannot open: No such file"));
}

TEST_F(FolderReaderTest, LeavesOutWhatIsNoImage) {
  Photos();
  Write(".git/0.png", Png(0));
  Write("dog/.hidden.png", Png(0));
  Write("dog/empty.png", "");
  Write("dog/notes.txt", "no image");
  Write("readme.png", Png(0));
  fs::create_directory_symlink("..", folder_.path("photos/dog/circle"));
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(Keys(), ElementsAre("cat/0.png", "cat/1.png", "dog/2.png", "dog/3.png", "dog/4.png"));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("photos: 4 files are left out; the first is 'dog/circle': a link"),
                    Not(HasSubstr("hidden"))));
}

// Formats without a signature, such as PPM, are decoded to find out.
TEST_F(FolderReaderTest, TakesImagesOfEveryFormat) {
  Write("cat/0.ppm", "P6 1 1 255\n\1\2\3");
  EXPECT_THAT(Keys(), ElementsAre("cat/0.ppm"));
}

TEST_F(FolderReaderTest, EmptyClassesKeepTheirLabels) {
  Write("b/0.png", Png(0));
  fs::create_directory(folder_.path("photos/a"));
  const auto reader = Open();
  Record record;
  ASSERT_TRUE(reader->First(&record));
  Datum datum;
  ASSERT_TRUE(datum.ParseFromString(std::string(record.value)));
  EXPECT_EQ(datum.label(), 1);
}

TEST_F(FolderReaderTest, ExplainsWhatIsWrong) {
  const auto error = [&] { return ErrorText<IoError>([&] { Open(); }); };
  EXPECT_THAT(error(), HasSubstr("photos: no folder here"));
  fs::create_directory(path_);
  EXPECT_THAT(error(), HasSubstr("photos: has no folders; give one that has a folder of images"));
  Write("0.png", Png(0));
  EXPECT_THAT(error(), HasSubstr("photos: has no folders"));
  fs::create_directory(folder_.path("photos/cat"));
  EXPECT_THAT(error(), HasSubstr("photos: its folders hold no images"));
  fs::rename(folder_.path("photos/cat"), folder_.path("photos/train"));
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { Open(); }),
              HasSubstr("holds 'train', which looks like a part of a set"));
  EXPECT_THAT(ErrorText<IoError>([&] { OpenRecordReader(DataParameter::LEVELDB, path_); }),
              HasSubstr("no LMDB or LevelDB database here; give the folder that holds data.mdb or "
                        "CURRENT, or train with data_param { backend: FOLDER }"));
  EXPECT_THAT(ErrorText<Unsupported>([&] { CreateRecordWriter(DataParameter::FOLDER, path_); }),
              HasSubstr("a folder of images is read as a database, but not written as one"));
}

TEST_F(FolderReaderTest, ADatabaseInTheFolderDecides) {
  Photos();
  const auto writer = CreateRecordWriter(DataParameter::LMDB, folder_.path("db"));
  writer->Put("key", "value");
  writer->Finish();
  fs::rename(folder_.path("db/data.mdb"), folder_.path("photos/data.mdb"));
  EXPECT_EQ(Open()->count(), 1u);
}

}  // namespace
}  // namespace caffe::data
