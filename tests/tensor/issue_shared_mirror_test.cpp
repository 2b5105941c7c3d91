// Parameters that layers share are one storage under several blobs. A blob that shows another type
// than the storage's kept showing its copy after a run had written through another one of them.
#include <gtest/gtest.h>

#include "caffe/blob.hpp"

namespace caffe {
namespace {

TEST(IssueSharedMirrorTest, AWriteThroughOneBlobIsSeenInTheOther) {
  Blob owner(Shape{3}), sharer(Shape{3});
  sharer.ShareDiff(owner);
  owner.mutable_cpu_diff<float>()[1] = 2;
  EXPECT_EQ(owner.cpu_diff<double>()[1], 2);
  sharer.mutable_cpu_diff<float>()[1] = 5;
  EXPECT_EQ(owner.cpu_diff<double>()[1], 5);
}

TEST(IssueSharedMirrorTest, AWriteInAnotherTypeIsSeenInTheOther) {
  Blob owner(Shape{3}), sharer(Shape{3});
  sharer.ShareData(owner);
  EXPECT_EQ(owner.cpu_data<double>()[2], 0);
  sharer.mutable_cpu_data<double>()[2] = 7;
  EXPECT_EQ(sharer.cpu_data<float>()[2], 7);  // writes it back
  EXPECT_EQ(owner.cpu_data<double>()[2], 7);
  owner.mutable_cpu_data<double>()[2] = 8;
  EXPECT_EQ(owner.cpu_data<float>()[2], 8);
  EXPECT_EQ(sharer.cpu_data<double>()[2], 8);
}

}  // namespace
}  // namespace caffe
