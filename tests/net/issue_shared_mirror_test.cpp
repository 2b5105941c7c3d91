// Parameters that layers share are one storage under several blobs. A blob that shows a type other
// than the storage's kept showing its old copy after a run had written through another of the
// blobs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "caffe/blob.hpp"
#include "caffe/net.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"

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

TEST(IssueSharedMirrorTest, AWriteThatIsPendingInOneBlobIsSeenInTheOther) {
  Blob owner(Shape{3}), sharer(Shape{3});
  sharer.ShareData(owner);
  owner.mutable_cpu_data<double>()[2] = 7;
  EXPECT_EQ(sharer.cpu_data<float>()[2], 7);
  sharer.mutable_cpu_data<double>()[2] = 8;
  EXPECT_EQ(owner.cpu_data<double>()[2], 8);
  const std::shared_ptr<double> held = owner.hold_cpu_data<double>();
  held.get()[1] = 9;
  EXPECT_EQ(sharer.cpu_data<float>()[1], 9);
}

TEST(IssueSharedMirrorTest, ABlobThatIsGoneIsNotAsked) {
  Blob owner(Shape{3});
  {
    Blob sharer(Shape{3}), other(Shape{3});
    sharer.ShareData(owner);
    sharer.mutable_cpu_data<double>()[0] = 1;
    EXPECT_EQ(owner.cpu_data<float>()[0], 1);
    sharer.mutable_cpu_data<double>()[0] = 2;
    sharer.ShareData(other);  // drops the unread value
    sharer.mutable_cpu_data<double>()[0] = 3;
    EXPECT_EQ(owner.cpu_data<float>()[0], 1);
  }
  EXPECT_EQ(owner.cpu_data<float>()[0], 1);
}

TEST(IssueSharedMirrorTest, MemoryOfAnotherTypeIsRefused) {
  constexpr char kNet[] = R"(
      layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 2 } } }
      layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y'
              inner_product_param { num_output: 1 } })";
  const std::string types = "default_forward_type: DOUBLE default_backward_type: DOUBLE ";
  const Net owner(testing::ParseNet(types + kNet), {});
  Net reader(testing::ParseNet(kNet), {});
  EXPECT_THAT(testing::ErrorText<InvalidArgument>([&] { reader.ShareTrainedLayersWith(owner); }),
              ::testing::HasSubstr("layer 'ip': cannot share memory of type double with a blob of "
                                   "type float; give both layers one type"));
}

// A net that shares its weights with a net in which they are set.
TEST(IssueSharedMirrorTest, ANetReadsWhatIsPendingInTheBlobsOfAnother) {
  constexpr char kNet[] = R"(
      layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 2 } } }
      layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y'
              inner_product_param { num_output: 1 } })";
  Net owner(testing::ParseNet(kNet), {}), reader(testing::ParseNet(kNet), {});
  reader.ShareTrainedLayersWith(owner);
  reader.blob_by_name("x")->mutable_cpu_data()[1] = 1;
  owner.layer_params("ip")[0]->mutable_cpu_data<double>()[1] = 2;
  EXPECT_EQ(reader.Forward()[0]->cpu_data()[0], 2);
}

}  // namespace
}  // namespace caffe
