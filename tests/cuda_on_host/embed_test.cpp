// On GPUs as well, rows may have another type than the table that they come from.
#include <gtest/gtest.h>

#include "caffe/common.hpp"
#include "tests/support/embedded_rows.hpp"

namespace caffe {
namespace {

TEST(CudaEmbedTest, RowsAreThoseOfTheTable) {
  Caffe::set_mode(Caffe::GPU);
  testing::ExpectRowsOfTheTable();
  Caffe::set_mode(Caffe::CPU);
}

}  // namespace
}  // namespace caffe
