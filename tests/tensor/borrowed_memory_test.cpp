// Contents that have an origin are in memory only while somebody needs them.
#include <gtest/gtest.h>

#include <numeric>

#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {
namespace {

// The numbers first, first + 1, ...
class Counting final : public Origin {
 public:
  explicit Counting(float first) : first_(first) {}
  bool reads_parts() const override { return true; }
  void Read(int64_t first, int64_t count, DType dtype, void* to) const override {
    EXPECT_EQ(dtype, DType::kFloat);
    std::iota(static_cast<float*>(to), static_cast<float*>(to) + count,
              first_ + static_cast<float>(first));
    ++reads;
  }
  mutable int reads = 0;

 private:
  const float first_;
};

class BorrowedMemoryTest : public ::testing::Test {
 protected:
  static constexpr int64_t kBytes = 4 * sizeof(float);

  BorrowedMemoryTest() : tensor_(MakeDevice(DeviceKind::kCpu)) {
    tensor_.Reset({Shape{4}, DType::kFloat});
    tensor_.SetOrigin(origin_);
  }
  static int64_t Held(const SyncedTensor& tensor) {
    std::set<const void*> counted;
    return tensor.HeldBytes(&counted);
  }
  float Borrowed(int i) {
    const float value = static_cast<float*>(tensor_.Borrow())[i];
    tensor_.Return();
    return value;
  }

  const std::shared_ptr<Counting> origin_ = std::make_shared<Counting>(1.0F);
  SyncedTensor tensor_;
};

TEST_F(BorrowedMemoryTest, IsFreedWhenTheLastBorrowerReturnsIt) {
  EXPECT_EQ(Held(tensor_), 0);
  EXPECT_EQ(tensor_.AbsentFrom(), origin_);
  const uint64_t version = tensor_.version();
  tensor_.Borrow();
  EXPECT_EQ(static_cast<float*>(tensor_.Borrow())[3], 4);
  EXPECT_EQ(tensor_.AbsentFrom(), nullptr);
  tensor_.Return();
  EXPECT_EQ(Held(tensor_), kBytes);
  tensor_.Return();
  EXPECT_EQ(Held(tensor_), 0);
  EXPECT_EQ(origin_->reads, 1);
  EXPECT_EQ(tensor_.version(), version);
}

TEST_F(BorrowedMemoryTest, StaysOnceSomebodyHasItsAddress) {
  const float* const values = tensor_.host<float>();
  EXPECT_EQ(values[2], 3);
  EXPECT_EQ(tensor_.Borrow(), values);
  tensor_.Return();
  EXPECT_EQ(Held(tensor_), kBytes);
  EXPECT_EQ(tensor_.host<float>(), values);
  tensor_.mutable_host<float>()[2] = 7;
  EXPECT_EQ(Borrowed(2), 7);
}

TEST_F(BorrowedMemoryTest, StaysForAStepThatReadsIt) {
  void* const data = tensor_.data();
  EXPECT_EQ(tensor_.Borrow(), data);
  tensor_.Return();
  EXPECT_EQ(tensor_.data(), data);
  EXPECT_EQ(Held(tensor_), kBytes);
}

// A mirror in another type belongs to the user; its changes are written into the elements.
TEST_F(BorrowedMemoryTest, TakesChangesInAnotherType) {
  tensor_.mutable_host<double>()[1] = 0.5;
  EXPECT_EQ(Borrowed(1), 0.5F);
  EXPECT_EQ(Borrowed(2), 3);
}

TEST_F(BorrowedMemoryTest, ContentsMayBeReplaced) {
  const uint64_t before = tensor_.version();
  tensor_.SetOrigin(std::make_shared<Counting>(10.0F));
  EXPECT_NE(tensor_.version(), before);
  EXPECT_EQ(Borrowed(0), 10);
  const float* const values = tensor_.host<float>();
  tensor_.SetOrigin(std::make_shared<Counting>(20.0F));
  EXPECT_EQ(values[0], 20);
  const std::shared_ptr<void> held = tensor_.HoldHost(DType::kDouble);
  tensor_.SetOrigin(std::make_shared<Counting>(30.0F));
  EXPECT_EQ(static_cast<double*>(held.get())[1], 31);
}

TEST_F(BorrowedMemoryTest, TensorsThatShareItReadItOnce) {
  SyncedTensor other(MakeDevice(DeviceKind::kCpu));
  other.Reset(tensor_.desc());
  other.ShareWith(tensor_);
  other.Borrow();
  EXPECT_EQ(Borrowed(0), 1);
  other.Return();
  EXPECT_EQ(Held(tensor_), 0);
  EXPECT_EQ(origin_->reads, 1);
  EXPECT_EQ(other.data(), tensor_.data());
  std::set<const void*> counted;
  EXPECT_EQ(other.HeldBytes(&counted) + tensor_.HeldBytes(&counted), kBytes);
}

TEST_F(BorrowedMemoryTest, WithoutAnOriginItStays) {
  tensor_.Reset({Shape{5}, DType::kFloat});
  tensor_.Borrow();
  tensor_.Return();
  EXPECT_EQ(Held(tensor_), 5 * static_cast<int64_t>(sizeof(float)));
}

TEST_F(BorrowedMemoryTest, AWriteForgetsTheRecipe) {
  tensor_.SetRecipe({.steps = 5, .versions = {1, 2}});
  SyncedTensor other(MakeDevice(DeviceKind::kCpu));
  other.Reset(tensor_.desc());
  other.ShareWith(tensor_);
  EXPECT_EQ(other.recipe().steps, 5U);
  other.MarkWritten();
  EXPECT_EQ(tensor_.recipe().steps, 0U);
}

}  // namespace
}  // namespace caffe
