// Memory that callers hold stays equal to the tensor, and stays theirs.
#include <gtest/gtest.h>

#include "caffe/blob.hpp"
#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {
namespace {

const Shape kImage{1, 2, 1, 2};
// Plain 0 1 2 3 is channels-last 0 2 1 3.
constexpr float kStored[] = {0, 2, 1, 3};

class HeldMemoryTest : public ::testing::Test {
 protected:
  HeldMemoryTest() : tensor_(MakeDevice(DeviceKind::kCpu)) {
    tensor_.Reset({kImage, DType::kFloat, Layout::kChannelsLast});
    Compute(kStored);
  }

  // Does the same as a plan's run: takes over the caller's changes, then writes.
  void Compute(const float (&stored)[4]) {
    std::copy_n(stored, 4, static_cast<float*>(tensor_.data()));
    tensor_.MarkWritten();
  }
  std::shared_ptr<float> Hold() {
    return std::static_pointer_cast<float>(tensor_.HoldHost(DType::kFloat));
  }
  float Stored(int i) { return static_cast<float*>(tensor_.data())[i]; }

  SyncedTensor tensor_;
};

TEST_F(HeldMemoryTest, ShowsWhatARunWrites) {
  const std::shared_ptr<float> held = Hold();
  EXPECT_EQ(held.get()[1], 1);
  Compute({5, 6, 7, 8});
  EXPECT_EQ(held.get()[1], 7);
  EXPECT_EQ(Hold(), held);
}

TEST_F(HeldMemoryTest, WritesReachTheNextRunEvenWhenNobodyHoldsOnAnyMore) {
  {
    const std::shared_ptr<float> held = Hold();
    held.get()[1] = 9;
    EXPECT_EQ(Stored(2), 9);
    held.get()[1] = 10;
  }
  EXPECT_EQ(Stored(2), 10);
  EXPECT_EQ(tensor_.host<float>()[1], 10);
}

TEST_F(HeldMemoryTest, AHolderWhoDoesNotWriteUndoesNothing) {
  SyncedTensor other(MakeDevice(DeviceKind::kCpu));
  other.Reset(tensor_.desc());
  other.ShareWith(tensor_);
  const std::shared_ptr<float> held = Hold();
  static_cast<float*>(other.data())[2] = 4;
  EXPECT_EQ(Stored(2), 4);
}

TEST_F(HeldMemoryTest, OutlivesItsTensor) {
  std::shared_ptr<float> mirror, storage;
  {
    Blob blob(Shape{3});
    storage = blob.hold_cpu_data();
    storage.get()[2] = 1;
    EXPECT_EQ(blob.cpu_data()[2], 1);
  }
  mirror = Hold();
  tensor_.Reset({Shape{2}, DType::kFloat, Layout::kPlain});
  EXPECT_EQ(mirror.get()[3], 3);
  EXPECT_EQ(storage.get()[2], 1);
}

}  // namespace
}  // namespace caffe
