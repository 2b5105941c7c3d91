#include <gtest/gtest.h>

#include "caffe/ops/kernel.hpp"

namespace caffe {
namespace {

// A net that trains on the CPU also trains on a GPU.
TEST(KernelRegistryTest, CudaHasAKernelForEachOpOfTheCpu) {
  EXPECT_EQ(KernelRegistry::Get().OpNames(DeviceKind::kCuda),
            KernelRegistry::Get().OpNames(DeviceKind::kCpu));
}

}  // namespace
}  // namespace caffe
