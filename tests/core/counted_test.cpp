#include "caffe/core/counted.hpp"

#include <gtest/gtest.h>

namespace caffe {
namespace {

TEST(Counted, OneHasTheSingular) {
  EXPECT_EQ(Counted(0, "file"), "0 files");
  EXPECT_EQ(Counted(1, "file"), "1 file");
  EXPECT_EQ(Counted(2, "file"), "2 files");
  EXPECT_EQ(Counted(1, "class", "classes"), "1 class");
  EXPECT_EQ(Counted(2, "class", "classes"), "2 classes");
}

}  // namespace
}  // namespace caffe
