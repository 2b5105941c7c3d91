#include "caffe/data/batch_source.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <numeric>
#include <thread>

#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/error.hpp"
#include "caffe/io/binary_format.hpp"
#include "caffe/io/blob_proto.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/ops/images.hpp"
#include "caffe/ops/kernel.hpp"
#include "tests/data/allocation_counter.hpp"
#include "tests/data/batches.hpp"
#include "tests/data/databases.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::ErrorText;
using ::testing::HasSubstr;
using ::testing::Not;

class BatchSourceTest : public ::testing::Test {
 protected:
  // Options parsed from the text of the two messages; the source is this test's database.
  DatumOptions Options(const std::string& data, const std::string& transform = "") {
    DatumOptions options;
    options.train = true;
    options.seed = 7;
    options.layer = "data";
    ParseTextProto(data, "data_param", &options.data);
    ParseTextProto(transform, "transform_param", &options.transform);
    options.data.set_backend(DataParameter::LMDB);
    options.data.set_source(database());
    return options;
  }

  std::string database() const { return folder_.path("db"); }

  caffe::testing::TemporaryFolder folder_;
};

struct Values {
  std::vector<float> data, labels;
  friend bool operator==(const Values&, const Values&) = default;
};

Values Read(BatchSource* source, int batches) {
  Values values;
  for (int i = 0; i < batches; ++i) {
    const Batch& batch = source->Next();
    values.data.insert(values.data.end(), batch.floats(),
                       batch.floats() + batch.data_shape.count());
    values.labels.insert(values.labels.end(), batch.labels, batch.labels + batch.size);
  }
  return values;
}

std::vector<float> Labels(const DatumOptions& options, int batches) {
  DatumBatches source(options);
  return Read(&source, batches).labels;
}

std::string JpegOf(int index, int height, int width) {
  Image image{{3, height, width}, std::vector<uint8_t>(3 * height * width)};
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    image.pixels[i] = static_cast<uint8_t>(index * 40 + i / 64);
  }
  return EncodeImage(image, "jpg");
}

TEST_F(BatchSourceTest, BatchesDoNotDependOnThreadCount) {
  WriteDatabase(database(), NumberedRecords(23, 3, 12, 10));
  for (const char* order :
       {"", "shuffle: true", "shuffle: true cache: true", "cache: true precache: true"}) {
    DatumOptions options =
        Options(std::string("batch_size: 7 threads: 1 ") + order, "crop_size: 8 mirror: true");
    DatumBatches one(options);
    const Values expected = Read(&one, 12);
    for (const uint32_t threads : {2u, 5u}) {
      options.data.set_threads(threads);
      DatumBatches many(options);
      EXPECT_EQ(many.stats().threads, static_cast<int>(threads));
      EXPECT_EQ(Read(&many, 12), expected) << order << " with " << threads << " threads";
    }
  }
}

TEST_F(BatchSourceTest, EncodedBatchesDoNotDependOnThreadCount) {
  std::vector<std::string> records;
  for (int i = 0; i < 9; ++i) records.push_back(EncodedRecord(JpegOf(i, 20, 30), i));
  WriteDatabase(database(), records);
  DatumOptions options = Options("batch_size: 4 threads: 1", "crop_size: 16 mirror: true");
  DatumBatches one(options);
  options.data.set_threads(3);
  DatumBatches many(options);
  EXPECT_EQ(Read(&one, 7), Read(&many, 7));
}

TEST_F(BatchSourceTest, ResumesWhereItStopped) {
  WriteDatabase(database(), NumberedRecords(10, 1, 6, 6));
  for (const char* order : {"", "shuffle: true", "rand_skip: 5"}) {
    DatumOptions options =
        Options(std::string("batch_size: 4 ") + order, "crop_size: 4 mirror: true");
    DatumBatches whole(options);
    Read(&whole, 6);
    EXPECT_EQ(whole.records_consumed(), 24u);
    const Values expected = Read(&whole, 5);
    options.start_record = 24;
    DatumBatches resumed(options);
    EXPECT_EQ(Read(&resumed, 5), expected) << order;
    EXPECT_EQ(resumed.records_consumed(), 44u);
  }
}

TEST_F(BatchSourceTest, ReadsInOrderAndStartsOver) {
  WriteDatabase(database(), NumberedRecords(5, 1, 1, 2));
  EXPECT_THAT(Labels(Options("batch_size: 3"), 3), ElementsAre(0, 1, 2, 3, 4, 0, 1, 2, 3));
}

TEST_F(BatchSourceTest, ShufflesEveryEpochAnew) {
  WriteDatabase(database(), NumberedRecords(20, 1, 1, 1));
  const std::vector<float> labels = Labels(Options("batch_size: 20 shuffle: true"), 2);
  std::vector<float> first(labels.begin(), labels.begin() + 20);
  std::vector<float> second(labels.begin() + 20, labels.end());
  EXPECT_NE(first, second);
  std::vector<float> all(20);
  std::iota(all.begin(), all.end(), 0.0f);
  EXPECT_THAT(first, ::testing::UnorderedElementsAreArray(all));
  EXPECT_THAT(second, ::testing::UnorderedElementsAreArray(all));
}

TEST_F(BatchSourceTest, RanksDealRecordsInTrainingAndBatchesInTests) {
  WriteDatabase(database(), NumberedRecords(5, 1, 1, 1));
  DatumOptions options = Options("batch_size: 2");
  options.ranks = 2;
  options.rank = 1;
  EXPECT_THAT(Labels(options, 3), ElementsAre(1, 3, 0, 2, 4, 1));
  DatumBatches source(options);
  source.Next();
  EXPECT_EQ(source.records_consumed(), 4u);
  options.train = false;
  EXPECT_THAT(Labels(options, 2), ElementsAre(2, 3, 1, 2));
}

TEST_F(BatchSourceTest, SizesMayVaryFromBatchToBatch) {
  WriteDatabase(database(), {NumberedDatum(0, 1, 2, 3).SerializeAsString(),
                             NumberedDatum(1, 1, 4, 5).SerializeAsString()});
  DatumBatches source(Options("batch_size: 1"));
  EXPECT_EQ(source.data_shape(), (Shape{1, 1, 2, 3}));
  EXPECT_EQ(source.Next().data_shape, (Shape{1, 1, 2, 3}));
  EXPECT_EQ(source.Next().data_shape, (Shape{1, 1, 4, 5}));
  EXPECT_EQ(source.data_shape(), (Shape{1, 1, 4, 5}));
}

TEST_F(BatchSourceTest, SizesMayNotVaryWithinABatch) {
  WriteDatabase(database(), {NumberedDatum(0, 1, 2, 3).SerializeAsString(),
                             NumberedDatum(1, 1, 4, 5).SerializeAsString()});
  DatumBatches source(Options("batch_size: 2"));
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { source.Next(); }),
              AllOf(HasSubstr("record 1 ('00000001')"), HasSubstr("1x4x5"), HasSubstr("1x2x3")));
}

TEST_F(BatchSourceTest, ChannelsMayNotVaryWithinABatch) {
  WriteDatabase(database(), {NumberedDatum(0, 1, 4, 4).SerializeAsString(),
                             NumberedDatum(1, 3, 4, 4).SerializeAsString()});
  DatumBatches source(Options("batch_size: 2"));
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { source.Next(); }),
              AllOf(HasSubstr("an image of 3x4x4"), HasSubstr("force_gray: true"),
                    HasSubstr("caffe data import"), Not(HasSubstr("crop_size"))));
}

TEST_F(BatchSourceTest, AllocatesNothingOnceRunning) {
  WriteDatabase(database(), NumberedRecords(50, 3, 16, 16));
  ASSERT_GT(AllocationCount(), 0u);  // the counter works
  for (const char* order : {"", "shuffle: true cache: true"}) {
    DatumBatches source(Options(std::string("batch_size: 8 threads: 2 ") + order,
                                "crop_size: 12 mirror: true mean_value: 3"));
    const Layout layout = *order == '\0' ? Layout::kPlain : Layout::kChannelsLast;
    for (int i = 0; i < 20; ++i) source.Next({layout});
    // Batches up to a rewind, which logs a line, are left out: glog allocates.
    uint64_t least = ~uint64_t{0};
    for (int i = 0; i < 30; ++i) {
      const uint64_t before = AllocationCount();
      source.Next({layout});
      least = std::min<uint64_t>(least, AllocationCount() - before);
    }
    EXPECT_EQ(least, 0u) << order;
  }
}

// Memory that records which thread made it. The thread that asks for a batch takes some, and so do
// the threads that fill the next batches.
struct CountedMemory {
  HostMemory Maker() {
    return [this](size_t bytes) {
      ++made;
      auto memory = std::make_shared<std::vector<char>>(bytes);
      const std::lock_guard lock(mutex);
      ranges.emplace_back(memory->data(), bytes);
      return std::shared_ptr<void>(memory, memory->data());
    };
  }
  bool Holds(const void* place) {
    const std::lock_guard lock(mutex);
    return std::any_of(ranges.begin(), ranges.end(), [&](const auto& range) {
      return range.first <= place && place < static_cast<const char*>(range.first) + range.second;
    });
  }
  std::atomic<int> made = 0;
  std::mutex mutex;  // guards `ranges`
  std::vector<std::pair<const void*, size_t>> ranges;
};

TEST_F(BatchSourceTest, BatchesLieInTheMemoryAndTypeThatAreAskedFor) {
  WriteDatabase(database(), NumberedRecords(20, 3, 9, 11));
  for (const DType dtype : {DType::kFloat, DType::kFloat16, DType::kBFloat16, DType::kDouble}) {
    for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
      const DatumOptions options =
          Options("batch_size: 4 threads: 2", "crop_size: 8 mirror: true scale: 0.3");
      DatumBatches expected(options), source(options);
      CountedMemory memory;
      for (int i = 0; i < 20; ++i) {
        const Batch& plain = expected.Next({layout});
        const Batch& batch = source.Next({layout, dtype, memory.Maker()});
        ASSERT_EQ(batch.dtype, dtype);
        ASSERT_EQ(batch.layout, layout);
        EXPECT_TRUE(memory.Holds(batch.data)) << i;
        const TensorDesc desc{batch.data_shape, dtype, layout};
        std::vector<char> converted(desc.bytes());
        CopyTensor({{batch.data_shape, DType::kFloat, layout}, const_cast<float*>(plain.floats())},
                   {desc, converted.data()});
        EXPECT_EQ(std::memcmp(batch.data, converted.data(), converted.size()), 0) << i;
        if (i == 9) memory.made = 0;
      }
      EXPECT_EQ(memory.made, 0);  // the buffers are reused
    }
  }
}

TEST_F(BatchSourceTest, BytesLieInTheMemoryThatIsAskedFor) {
  WriteDatabase(database(), NumberedRecords(20, 3, 9, 11));
  DatumOptions options = Options("batch_size: 4 threads: 2", "crop_size: 8");
  options.leave_transform = true;
  DatumBatches expected(options), source(options);
  CountedMemory memory;
  for (int i = 0; i < 20; ++i) {
    const Batch& ordinary = expected.Next();
    const Batch& batch = source.Next({.memory = memory.Maker()});
    EXPECT_TRUE(memory.Holds(batch.images)) << i;
    EXPECT_EQ(std::memcmp(batch.images, ordinary.images, batch.image_shape.count()), 0) << i;
  }
}

// An event that is reached when somebody waits for it.
class CountedEvent : public Event {
 public:
  explicit CountedEvent(int* waits) : waits_(waits) {}
  void Synchronize() override { ++*waits_; }
  bool IsReached() override { return false; }
  double SecondsSince(const Event&) const override { return 0; }

 private:
  int* const waits_;
};

TEST_F(BatchSourceTest, MemoryThatIsLentIsWrittenAgainOnlyAfterItHasBeenFetched) {
  WriteDatabase(database(), NumberedRecords(20, 1, 4, 4));
  int waits = 0;
  {
    DatumBatches source(Options("batch_size: 4"));
    source.Next();
    source.LendUntil(std::make_shared<CountedEvent>(&waits));
    EXPECT_EQ(waits, 0);
    source.Next();
    EXPECT_EQ(waits, 1);
    source.Next();
    EXPECT_EQ(waits, 1);
    source.LendUntil(std::make_shared<CountedEvent>(&waits));
  }
  EXPECT_EQ(waits, 2);  // memory is not freed earlier
}

TEST_F(BatchSourceTest, EmptyAndMissingDatabasesAreNamed) {
  EXPECT_THAT(ErrorText<IoError>([&] { DatumBatches source(Options("batch_size: 1")); }),
              HasSubstr(database() + ": no LMDB database here"));
  WriteDatabase(database(), {});
  EXPECT_THAT(ErrorText<IoError>([&] { DatumBatches source(Options("batch_size: 1")); }),
              HasSubstr(database() + ": has no records"));
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { DatumBatches source(Options("")); }),
              HasSubstr("batch_size"));
}

TEST_F(BatchSourceTest, RecordThatIsNoDatumIsNamed) {
  std::vector<std::string> records = NumberedRecords(4, 1, 2, 2);
  records[2] = "no datum at all";
  WriteDatabase(database(), records);
  DatumBatches source(Options("batch_size: 2"));
  source.Next();
  for (int i = 0; i < 2; ++i) {  // the second call does not hang or continue
    EXPECT_THAT(ErrorText<IoError>([&] { source.Next(); }),
                HasSubstr("db: record 2 ('00000002'): not a Datum (parse error at byte 0"));
  }
}

TEST_F(BatchSourceTest, PrefetchIsNotUnbounded) {
  WriteDatabase(database(), NumberedRecords(2, 1, 2, 2));
  EXPECT_THAT(ErrorText<InvalidArgument>(
                  [&] { DatumBatches(Options("batch_size: 1 prefetch: 4000000000")); }),
              HasSubstr("prefetch is 4000000000 batches"));
}

TEST_F(BatchSourceTest, AKeyOfBytesDoesNotEndTheMessage) {
  const auto writer = CreateLmdbWriter(database(), {.map_bytes = 1 << 20});
  writer->Put(std::string("\0\n1", 3), "not a datum");
  writer->Finish();
  EXPECT_THAT(ErrorText<IoError>([&] { DatumBatches(Options("batch_size: 1")); }),
              AllOf(HasSubstr("record 0 ('\\x00\\x0a1'): "), HasSubstr("not a Datum")));
}

TEST_F(BatchSourceTest, TruncatedRecordIsNamed) {
  std::vector<std::string> records = NumberedRecords(3, 1, 4, 4);
  records[1].resize(12);
  WriteDatabase(database(), records);
  DatumBatches source(Options("batch_size: 3"));
  EXPECT_THAT(ErrorText<IoError>([&] { source.Next(); }),
              HasSubstr("record 1 ('00000001'): not a Datum"));
}

TEST_F(BatchSourceTest, DatumOfTheWrongSizeIsNamed) {
  std::vector<std::string> records = NumberedRecords(2, 1, 4, 4);
  Datum datum = NumberedDatum(1, 1, 4, 4);
  datum.mutable_data()->resize(15);
  records[1] = datum.SerializeAsString();
  WriteDatabase(database(), records);
  DatumBatches source(Options("batch_size: 2"));
  EXPECT_THAT(ErrorText<IoError>([&] { source.Next(); }),
              AllOf(HasSubstr("1x4x4 needs 16"), HasSubstr("holds 15")));
}

// PoseNet's records: an image in data, and its label in float_data.
TEST_F(BatchSourceTest, LabelsMayHaveSeveralNumbers) {
  std::vector<Datum> records;
  for (int i = 0; i < 2; ++i) {
    records.push_back(NumberedDatum(i, 1, 4, 4));
    for (const float number : {0.5f, 1.5f, -2.0f})
      records.back().add_float_data(number + static_cast<float>(i));
  }
  WriteDatabase(database(), {records[0].SerializeAsString(), records[1].SerializeAsString()});
  const DatumOptions options = Options("batch_size: 2", "crop_size: 3");
  DatumBatches source(options);
  EXPECT_EQ(source.label_shape(), (Shape{2, 3, 1, 1}));
  const Batch& batch = source.Next();
  EXPECT_EQ(batch.label_shape, (Shape{2, 3, 1, 1}));
  EXPECT_THAT(std::vector<float>(batch.labels, batch.labels + 6),
              ElementsAre(0.5f, 1.5f, -2, 1.5f, 2.5f, -1));
}

TEST_F(BatchSourceTest, LabelsMustBeEquallyLong) {
  Datum longer = NumberedDatum(1, 1, 4, 4);
  longer.add_float_data(1);
  WriteDatabase(database(),
                {NumberedDatum(0, 1, 4, 4).SerializeAsString(), longer.SerializeAsString()});
  DatumBatches source(Options("batch_size: 2"));
  EXPECT_THAT(
      ErrorText<InvalidArgument>([&] { source.Next(); }),
      HasSubstr("the record has 1 numbers in float_data in addition to its data, the first record "
                "has 0"));
}

TEST_F(BatchSourceTest, BrokenJpegIsAnErrorOrSkipped) {
  // Broken in the header, and in the pixels.
  const std::string file = JpegOf(1, 64, 64);
  for (const size_t size : {file.size() / 2, file.size() * 9 / 10}) {
    SCOPED_TRACE(size);
    std::vector<std::string> records;
    for (int i = 0; i < 4; ++i) records.push_back(EncodedRecord(JpegOf(i, 64, 64), i));
    records[1] = EncodedRecord(file.substr(0, size), 1);
    std::filesystem::remove_all(database());
    WriteDatabase(database(), records);
    DatumBatches source(Options("batch_size: 4"));
    EXPECT_THAT(ErrorText<IoError>([&] { source.Next(); }),
                AllOf(HasSubstr("record 1 ('00000001')"), HasSubstr("broken JPEG image")));
    DatumBatches skipping(Options("batch_size: 4 skip_broken: true prefetch: 1"));
    EXPECT_THAT(Read(&skipping, 1).labels, ElementsAre(0, 2, 2, 3));
    EXPECT_GE(skipping.stats().broken_records, 1u);
  }
}

std::vector<uint64_t> IndexesOfBatch(const BatchSource& source) {
  std::vector<uint64_t> indexes;
  for (const RecordSequence::Item& item : source.RecordsOfBatch()) indexes.push_back(item.index);
  return indexes;
}

TEST_F(BatchSourceTest, SaysWhichRecordsABatchHas) {
  std::vector<std::string> records = NumberedRecords(5, 1, 4, 4);
  records[3] = "broken";
  WriteDatabase(database(), records);
  DatumBatches source(Options("batch_size: 3 skip_broken: true"));
  EXPECT_TRUE(source.RecordsOfBatch().empty());
  source.Next();
  EXPECT_THAT(IndexesOfBatch(source), ElementsAre(0, 1, 2));
  EXPECT_EQ(source.RecordsOfBatch()[2].record.key, "00000002");
  source.Next();
  EXPECT_THAT(IndexesOfBatch(source), ElementsAre(4, 4, 0));
  source.Repeat();
  source.Next();
  EXPECT_THAT(IndexesOfBatch(source), ElementsAre(4, 4, 0));
}

TEST_F(BatchSourceTest, AJpegCannotPromiseMorePixelsThanItsBytesHold) {
  std::string file = JpegOf(0, 16, 16);
  const size_t frame = file.find("\xff\xc0");  // marker, length, precision, height, width
  ASSERT_NE(frame, std::string::npos);
  file.replace(frame + 5, 4, "\xff\x00\xff\x00", 4);
  WriteDatabase(database(), {EncodedRecord(file, 0)});
  EXPECT_THAT(ErrorText<IoError>([&] { DatumBatches source(Options("batch_size: 1")); }),
              HasSubstr("bytes cannot hold 65280x65280 pixels"));
}

TEST_F(BatchSourceTest, WhatTakesABrokenImagesPlaceMayBeOfAnotherSize) {
  const std::string file = JpegOf(1, 64, 64);
  for (const size_t size : {size_t{10}, file.size() * 9 / 10}) {  // in the header, in the pixels
    SCOPED_TRACE(size);
    std::filesystem::remove_all(database());
    WriteDatabase(database(),
                  {EncodedRecord(JpegOf(0, 20, 30), 0), EncodedRecord(file.substr(0, size), 1),
                   EncodedRecord(JpegOf(2, 40, 24), 2)});
    DatumBatches source(Options("batch_size: 1 skip_broken: true prefetch: 1"));
    EXPECT_EQ(source.Next().data_shape, (Shape{1, 3, 20, 30}));
    const Batch& second = source.Next();
    EXPECT_EQ(second.data_shape, (Shape{1, 3, 40, 24}));
    EXPECT_EQ(second.labels[0], 2);
  }
}

TEST_F(BatchSourceTest, SkippingEndsWhenEveryRecordIsBroken) {
  WriteDatabase(database(), {"x", "y", "z"});
  EXPECT_THAT(
      ErrorText<IoError>([&] { DatumBatches source(Options("batch_size: 2 skip_broken: true")); }),
      HasSubstr("the last of 3 broken records in a row"));
}

TEST_F(BatchSourceTest, EndsAtAnyMoment) {
  WriteDatabase(database(), NumberedRecords(30, 3, 16, 16));
  for (int i = 0; i < 30; ++i) {
    DatumBatches source(Options("batch_size: 5 threads: 3 prefetch: 2"));
    for (int batch = 0; batch < i % 4; ++batch) source.Next();
    for (int moment = 0; moment < 10 * i; ++moment) std::this_thread::yield();
  }
}

TEST_F(BatchSourceTest, MeanHasToFitTheImages) {
  WriteDatabase(database(), NumberedRecords(2, 3, 6, 7));
  BlobProto mean;
  WriteBlobFloats(Shape{1, 3, 6, 6}, std::vector<float>(108), &mean);
  WriteBinaryProto(folder_.path("mean"), mean);
  EXPECT_THAT(
      ErrorText<InvalidArgument>([&] {
        DatumBatches source(Options("batch_size: 1", "mean_file: '" + folder_.path("mean") + "'"));
      }),
      AllOf(HasSubstr("mean of 3x6x6"), HasSubstr("is 3x6x7")));
}

// The same sequence of batches, transformed by a device: the output of its reference kernel.
std::vector<float> ReadAndTransform(BatchSource* source, int batches) {
  const DeviceTransform& transform = *source->device_transform();
  const std::shared_ptr<Device> cpu = MakeDevice(DeviceKind::kCpu);
  const auto& reference =
      KernelRegistry::Get().Candidates(DeviceKind::kCpu, typeid(ops::TransformImages)).back();
  const Op op = ops::TransformImages{transform.scale};
  const Kernel kernel = std::get<Kernel>(reference.factory({op, {}, {}, *cpu}));
  std::vector<float> values;
  for (int i = 0; i < batches; ++i) {
    const Batch& batch = source->Next();
    EXPECT_EQ(batch.floats(), nullptr);
    std::vector<float> y(batch.data_shape.count());
    std::vector<TensorView> inputs = {
        {{batch.image_shape, DType::kUInt8}, const_cast<uint8_t*>(batch.images)},
        {{Shape{batch.size, ops::ImageWindow::kNumbers}}, const_cast<float*>(batch.windows)}};
    if (transform.mean != nullptr) {
      inputs.push_back({{transform.mean_shape}, const_cast<float*>(transform.mean->data())});
    }
    const std::vector<TensorView> outputs = {{{batch.data_shape}, y.data()}};
    KernelContext context;
    context.inputs = inputs;
    context.outputs = outputs;
    kernel.run(context);
    values.insert(values.end(), y.begin(), y.end());
  }
  return values;
}

class LayoutTest : public BatchSourceTest {
 protected:
  // Reads successive batches in changing layouts, and compares them with plain ones.
  template <typename Batches, typename Options>
  static void ExpectSameNumbers(Options options) {
    for (const bool train : {true, false}) {
      options.train = train;
      Batches plain(options), other(options);
      for (int i = 0; i < 16; ++i) {
        const Layout layout = i / 5 % 2 == 0 ? Layout::kChannelsLast : Layout::kPlain;
        const Batch& expected = plain.Next();
        const Batch& batch = other.Next({layout});
        ASSERT_EQ(expected.layout, Layout::kPlain);
        ASSERT_EQ(batch.layout, layout);
        EXPECT_EQ(InPlain(batch), InPlain(expected)) << "batch " << i;
        EXPECT_EQ(std::vector<float>(batch.labels, batch.labels + batch.size),
                  std::vector<float>(expected.labels, expected.labels + expected.size));
      }
    }
  }

  static std::vector<float> InPlain(const Batch& batch) {
    const Shape& shape = batch.data_shape;
    std::vector<float> plain;
    for (int64_t n = 0; n < shape[0]; ++n) {
      for (int64_t c = 0; c < shape[1]; ++c) {
        for (int64_t pixel = 0; pixel < shape.count(2); ++pixel) {
          const int64_t place =
              batch.layout == Layout::kPlain ? c * shape.count(2) + pixel : pixel * shape[1] + c;
          plain.push_back(batch.floats()[n * shape.count(1) + place]);
        }
      }
    }
    return plain;
  }

  void WriteMean(int channels, int height, int width) {
    BlobProto mean;
    for (const int extent : {1, channels, height, width}) mean.mutable_shape()->add_dim(extent);
    for (int i = 0; i < channels * height * width; ++i) {
      mean.add_data(static_cast<float>(i % 97) * 0.3f);
    }
    WriteBinaryProto(folder_.path("mean"), mean);
  }
  std::string mean_file() const { return " mean_file: '" + folder_.path("mean") + "'"; }
};

TEST_F(LayoutTest, OfRawRecords) {
  for (const int channels : {1, 2, 3, 4, 7}) {
    SCOPED_TRACE(channels);
    std::filesystem::remove_all(database());
    WriteDatabase(database(), NumberedRecords(10, channels, 7, 9));
    WriteMean(channels, 7, 9);
    const std::vector<std::string> transforms = {
        "", "scale: 0.25 mirror: true", "crop_size: 5 mirror: true mean_value: 104.5",
        "crop_size: 4" + mean_file(), "mirror: true" + mean_file()};
    for (const std::string& transform : transforms) {
      SCOPED_TRACE(transform);
      ExpectSameNumbers<DatumBatches>(Options("batch_size: 4 threads: 2", transform));
    }
  }
}

// Rows longer than the blocks in which interleaving works.
TEST_F(LayoutTest, OfWideImages) {
  WriteDatabase(database(), NumberedRecords(3, 3, 2, 1300));
  WriteMean(3, 2, 1300);
  const std::vector<std::string> transforms = {"mean_value: 1 mean_value: 2.5 mean_value: 3",
                                               mean_file(),
                                               "crop_h: 2 crop_w: 1290 mirror: true" + mean_file()};
  for (const std::string& transform : transforms) {
    SCOPED_TRACE(transform);
    ExpectSameNumbers<DatumBatches>(Options("batch_size: 2", transform));
  }
}

TEST_F(LayoutTest, OfDecodedImages) {
  std::vector<std::string> records;
  for (int i = 0; i < 5; ++i) {
    records.push_back(EncodedRecord(JpegOf(i, 24, 20), i));
  }
  WriteDatabase(database(), records);
  WriteMean(3, 24, 20);
  const std::vector<std::string> transforms = {
      "",
      "mirror: true scale: 0.1",
      "crop_size: 16 mirror: true mean_value: 100",
      "crop_size: 9 mirror: true mean_value: 1 mean_value: 2.5 mean_value: 3",
      "crop_size: 8 mirror: true scale: 2" + mean_file(),
      mean_file()};
  for (const std::string& transform : transforms) {
    SCOPED_TRACE(transform);
    ExpectSameNumbers<DatumBatches>(Options("batch_size: 4 threads: 2", transform));
  }
  ExpectSameNumbers<DatumBatches>(Options("batch_size: 2", "force_gray: true mean_value: 3"));
}

TEST_F(LayoutTest, OfFloats) {
  Datum floats = NumberedDatum(0, 3, 4, 5);
  floats.clear_data();
  for (int i = 0; i < 60; ++i) floats.add_float_data(static_cast<float>(i) * 0.5f);
  WriteDatabase(database(), {floats.SerializeAsString()});
  ExpectSameNumbers<DatumBatches>(Options("batch_size: 2", "crop_size: 3 mirror: true"));
}

TEST_F(LayoutTest, OfWindows) {
  std::ofstream(folder_.path("a.jpg")) << JpegOf(1, 20, 30);
  std::ofstream(folder_.path("windows")) << "# 0\na.jpg\n3\n20\n30\n2\n"
                                            "2 0.9 10 4 17 11\n1 0.1 0 0 7 7\n";
  WindowOptions options;
  options.layer = "l";
  options.windows.set_source(folder_.path("windows"));
  options.windows.set_root_folder(folder_.path(""));
  options.windows.set_batch_size(4);
  options.windows.set_fg_fraction(0.5f);
  options.transform.set_crop_size(8);
  options.transform.set_mirror(true);
  ExpectSameNumbers<WindowBatches>(options);
}

TEST_F(LayoutTest, ARepeatedBatchMayChangeItsLayout) {
  WriteDatabase(database(), NumberedRecords(10, 3, 7, 9));
  DatumBatches source(Options("batch_size: 4"));
  source.Repeat();  // there is nothing to repeat yet
  const std::vector<float> first = InPlain(source.Next());
  for (const Layout layout : {Layout::kChannelsLast, Layout::kChannelsLast, Layout::kPlain}) {
    source.Repeat();
    const Batch& again = source.Next({layout});
    EXPECT_EQ(again.layout, layout);
    EXPECT_EQ(InPlain(again), first);
    EXPECT_EQ(source.records_consumed(), 4u);
  }
  EXPECT_NE(InPlain(source.Next()), first);
  EXPECT_EQ(source.records_consumed(), 8u);
}

class DeviceTransformTest : public BatchSourceTest {
 protected:
  // Three batches from both sources, for training and for testing.
  void ExpectSameNumbers(DatumOptions options) {
    for (const bool train : {true, false}) {
      options.train = train;
      options.leave_transform = false;
      DatumBatches host(options);
      EXPECT_EQ(host.device_transform(), nullptr);
      options.leave_transform = true;
      DatumBatches device(options);
      ASSERT_NE(device.device_transform(), nullptr);
      EXPECT_EQ(device.data_shape(), host.data_shape());
      EXPECT_EQ(ReadAndTransform(&device, 3), Read(&host, 3).data);
    }
  }
};

TEST_F(DeviceTransformTest, OfRawRecords) {
  WriteDatabase(database(), NumberedRecords(10, 3, 7, 9));
  for (const char* transform :
       {"", "scale: 0.25", "mirror: true", "crop_size: 5 mirror: true mean_value: 104.5",
        "crop_h: 4 crop_w: 8 mean_value: 1 mean_value: 2.5 mean_value: 3 scale: 0.1"}) {
    SCOPED_TRACE(transform);
    ExpectSameNumbers(Options("batch_size: 4", transform));
  }
}

TEST_F(DeviceTransformTest, WithAMeanImage) {
  WriteDatabase(database(), NumberedRecords(10, 2, 7, 9));
  BlobProto mean;
  for (const int extent : {1, 2, 7, 9}) mean.mutable_shape()->add_dim(extent);
  for (int i = 0; i < 2 * 7 * 9; ++i) mean.add_data(static_cast<float>(i) * 0.3f);
  WriteBinaryProto(folder_.path("mean"), mean);
  ExpectSameNumbers(Options("batch_size: 4", "crop_size: 5 mirror: true scale: 0.5 mean_file: '" +
                                                 folder_.path("mean") + "'"));
}

// Files and raw records together, and images larger than the first: only their windows are sent.
TEST_F(DeviceTransformTest, OfImagesOfAllKinds) {
  std::vector<std::string> records;
  for (int i = 0; i < 9; ++i) {
    const int height = 8 + i % 3 * 4, width = 9 + i % 2 * 5;
    Datum datum = NumberedDatum(i, 3, height, width);
    if (i % 4 == 3) {
      records.push_back(datum.SerializeAsString());
      continue;
    }
    const std::string& bytes = datum.data();
    const Image image{{3, height, width}, std::vector<uint8_t>(bytes.begin(), bytes.end())};
    records.push_back(EncodedRecord(EncodeImage(image, i % 2 == 0 ? "png" : "jpg"), i));
  }
  WriteDatabase(database(), records);
  ExpectSameNumbers(
      Options("batch_size: 4 threads: 3", "crop_size: 7 mirror: true mean_value: 100 scale: 0.01"));
  ExpectSameNumbers(Options("batch_size: 1", "mirror: true"));  // each image has its own shape
}

TEST_F(DeviceTransformTest, IsTheHostsWhereADeviceCannot) {
  Datum floats = NumberedDatum(0, 1, 4, 4);
  floats.clear_data();
  for (int i = 0; i < 16; ++i) floats.add_float_data(static_cast<float>(i) * 0.5f);
  WriteDatabase(database(), {floats.SerializeAsString()});
  DatumOptions options = Options("batch_size: 2");
  options.leave_transform = true;
  DatumBatches source(options);
  EXPECT_EQ(source.device_transform(), nullptr);
  EXPECT_EQ(source.Next().floats()[1], 0.5f);

  WriteDatabase(folder_.path("bytes"), NumberedRecords(2, 3, 8, 8));
  options = Options("batch_size: 2", "crop_size: 4 vertical_stretch_upper: 1.5");
  options.data.set_source(folder_.path("bytes"));
  options.leave_transform = true;
  EXPECT_EQ(DatumBatches(options).device_transform(), nullptr);
}

TEST_F(DeviceTransformTest, RefusesFloatsAmongBytes) {
  Datum floats = NumberedDatum(1, 1, 2, 2);
  floats.clear_data();
  for (int i = 0; i < 4; ++i) floats.add_float_data(1);
  WriteDatabase(database(),
                {NumberedDatum(0, 1, 2, 2).SerializeAsString(), floats.SerializeAsString()});
  DatumOptions options = Options("batch_size: 2");
  options.leave_transform = true;
  DatumBatches source(options);
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { source.Next(); }),
              AllOf(HasSubstr("record 1"), HasSubstr("use_gpu_transform: false")));
}

}  // namespace
}  // namespace caffe::data
