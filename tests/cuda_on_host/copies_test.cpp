// Copies between the host and a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "caffe/device/device.hpp"
#include "work_queue.hpp"

namespace caffe::cuda {
namespace {

// This also holds above the size that goes through pinned memory.
TEST(CudaCopiesTest, OrdinaryMemoryMayBeUsedAgainAtOnce) {
  const std::shared_ptr<Device> device = MakeDevice(DeviceKind::kCuda);
  for (const size_t bytes : {size_t{100}, size_t{100} << 10, size_t{1} << 20}) {
    const std::shared_ptr<void> memory = device->Allocate(bytes);
    std::vector<char> sent(bytes, 'a'), got(bytes);
    device->CopyFromHost(memory.get(), sent.data(), bytes);
    sent.assign(bytes, 'b');
    device->CopyToHost(got.data(), memory.get(), bytes);
    EXPECT_THAT(got, ::testing::Each('a')) << bytes;
  }
}

}  // namespace
}  // namespace caffe::cuda
