#include "caffe/cuda/cuda_device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"

namespace caffe::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(CudaDeviceTest, ChipsAreKnownByNameAndComputeCapability) {
  EXPECT_THAT(DescribeDevice(DeviceKind::kCuda, "H200")->description(),
              AllOf(HasSubstr("H200"), HasSubstr("compute capability 9.0")));
  EXPECT_THAT(DescribeDevice(DeviceKind::kCuda, "8.0")->description(), HasSubstr("A100"));
}

TEST(CudaDeviceTest, AnUnknownChipIsAnsweredWithTheKnownOnes) {
  try {
    DescribeDevice(DeviceKind::kCuda, "H2O0");
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("'H2O0'"), HasSubstr("A100"), HasSubstr("H200")));
  }
}

TEST(CudaDeviceTest, ADescribedDeviceIsPlannedForButNotUsed) {
  const std::shared_ptr<Device> device = DescribeDevice(DeviceKind::kCuda, "H200");
  EXPECT_TRUE(device->is_described());
  EXPECT_EQ(device->FreeBytes(), size_t{139} << 30);
  EXPECT_THROW(device->Allocate(1), DeviceError);
}

// With a driver the message is about device numbers, without one about the driver.
TEST(CudaDeviceTest, AMissingDeviceIsOneClearMessage) {
  try {
    MakeDevice(DeviceKind::kCuda, 1000);
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), ::testing::AnyOf(HasSubstr("there is no device 1000"),
                                               HasSubstr("no NVIDIA driver is loaded"),
                                               HasSubstr("install a newer driver")));
  }
}

}  // namespace
}  // namespace caffe::cuda
