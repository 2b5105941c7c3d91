#include "caffe/data/pipeline_bench.hpp"

#include <gtest/gtest.h>

#include "tests/data/databases.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe::data {
namespace {

TEST(PipelineBenchTest, MeasuresEveryStage) {
  const caffe::testing::TemporaryFolder folder;
  WriteDatabase(folder.path("db"), NumberedRecords(10, 3, 8, 8));
  DataParameter data;
  BatchSourceOptions options{.train = true, .layer = "data"};
  data.set_source(folder.path("db"));
  data.set_backend(DataParameter::LMDB);
  data.set_batch_size(4);
  options.transform.set_crop_size(6);
  const PipelineSpeed speed = MeasurePipeline(data, options, 0.01);
  EXPECT_GT(speed.read, 0);
  EXPECT_GT(speed.parse, 0);
  EXPECT_GT(speed.transform, 0);
  EXPECT_GT(speed.pipeline, 0);
  EXPECT_GT(speed.transform_channels_last, 0);
  EXPECT_GT(speed.pipeline_channels_last, 0);
  EXPECT_EQ(speed.jpeg_decode, 0);  // the records are raw
  EXPECT_EQ(speed.records, 10u);
  EXPECT_EQ(speed.image, "3x6x6");
  EXPECT_EQ(speed.numbers_per_image, 3 * 6 * 6);
  EXPECT_GT(speed.pack, 0);
  EXPECT_EQ(speed.packed_bytes_per_image, 3 * 8 * 8);
}

TEST(PipelineBenchTest, AMachineFeedsWhatItsSlowestPartLetsThrough) {
  PipelineSpeed speed;
  speed.read = 50000;
  speed.is_encoded = true;
  const Feed two = FeedOf(speed, 1000, 200'000, {.cores = 2});
  EXPECT_EQ(two.images_per_second, 2000);
  EXPECT_EQ(two.limit, "decoding");
  const Feed many = FeedOf(speed, 1000, 200'000, {.cores = 64});
  EXPECT_EQ(many.images_per_second, 50000);
  EXPECT_EQ(many.limit, "reading");
  const Feed linked = FeedOf(speed, 1000, 200'000, {.cores = 64, .link_bytes_per_second = 1e9});
  EXPECT_EQ(linked.images_per_second, 5000);
  EXPECT_EQ(linked.limit, "the link");
  EXPECT_GT(MeasureLink(DeviceKind::kCpu, 0, 0.01), 0);
}

}  // namespace
}  // namespace caffe::data
