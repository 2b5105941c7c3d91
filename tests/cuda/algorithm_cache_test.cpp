#include "caffe/cuda/algorithm_cache.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_folder.hpp"

namespace caffe::cuda {
namespace {

class AlgorithmCacheTest : public ::testing::Test {
 protected:
  testing::TemporaryFolder folder_;
  const std::string file_ = folder_.path("a/b/algorithms.tsv");
};

TEST_F(AlgorithmCacheTest, KnowsNothingAtFirst) {
  EXPECT_EQ(AlgorithmCache(file_).Find("conv 3x3"), std::nullopt);
}

TEST_F(AlgorithmCacheTest, RemembersInTheNextProcess) {
  AlgorithmCache(file_).Store("conv 3x3", "eng51");
  AlgorithmCache(file_).Store("conv 1x1", "eng0");
  AlgorithmCache next(file_);
  EXPECT_EQ(next.Find("conv 3x3"), "eng51");
  EXPECT_EQ(next.Find("conv 1x1"), "eng0");
  EXPECT_EQ(next.Find("conv"), std::nullopt);
}

TEST_F(AlgorithmCacheTest, TheLastMeasurementCounts) {
  AlgorithmCache cache(file_);
  cache.Store("conv", "eng1");
  cache.Store("conv", "eng2");
  EXPECT_EQ(cache.Find("conv"), "eng2");
  EXPECT_EQ(AlgorithmCache(file_).Find("conv"), "eng2");
}

TEST_F(AlgorithmCacheTest, ALineThatWasTornIsPassedOver) {
  AlgorithmCache(file_).Store("conv", "eng1");
  std::ofstream(file_, std::ios::app) << "torn";
  EXPECT_EQ(AlgorithmCache(file_).Find("conv"), "eng1");
}

TEST_F(AlgorithmCacheTest, AFileThatCannotBeWrittenCostsNoMoreThanMeasurements) {
  AlgorithmCache cache("/proc/no/such/place");
  cache.Store("conv", "eng1");
  EXPECT_EQ(cache.Find("conv"), "eng1");
}

}  // namespace
}  // namespace caffe::cuda
