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
}

}  // namespace
}  // namespace caffe::data
