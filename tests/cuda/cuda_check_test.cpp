// The exceptions that CUDA's errors become. None of the tests needs a GPU.
#include "caffe/cuda/cuda_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

#include "caffe/device/device_fault.hpp"
#include "tests/support/error_text.hpp"

namespace caffe::cuda {
namespace {

using ::testing::AllOf;
using testing::ErrorText;
using ::testing::HasSubstr;
using ::testing::Not;

class CudaCheckTest : public ::testing::Test {
 protected:
  ~CudaCheckTest() override { ::unsetenv("CUDA_LAUNCH_BLOCKING"); }

  static void Throw(int status) {
    ThrowCudaError(static_cast<cudaError_t>(status), "cudaMemcpyAsync(to, from, bytes)");
  }
};

TEST_F(CudaCheckTest, NamesTheCallTheErrorAndWhatToDo) {
  EXPECT_THAT(ErrorText<DeviceError>([] { Throw(cudaErrorMemoryAllocation); }),
              AllOf(HasSubstr("cuda: cudaMemcpyAsync: "), HasSubstr("cudaErrorMemoryAllocation"),
                    HasSubstr("lower batch_size")));
  try {
    Throw(cudaErrorMemoryAllocation);
  } catch (const DeviceFault&) {
    FAIL() << "the device goes on";
  } catch (const DeviceError&) {
  }
}

// All errors that make the device unusable for the process, according to the toolkit's header.
TEST_F(CudaCheckTest, ErrorsThatCostTheDeviceAreFaultsWithAdvice) {
  std::stringstream header;
  header << std::ifstream(CAFFE_CUDA_INCLUDE_DIR "/driver_types.h").rdbuf();
  const std::string text = header.str();
  const std::regex error(R"(\*/\s*(cudaError\w+)\s*=\s*(\d+))");
  int faults = 0;
  size_t begin = 0;
  for (std::sregex_iterator i(text.begin(), text.end(), error), end; i != end; ++i) {
    const size_t at = static_cast<size_t>(i->position());
    const std::string description =
        std::regex_replace(text.substr(begin, at - begin), std::regex("[ *\\s]+"), " ");
    begin = at;
    const bool is_fault = description.find("terminated and relaunched") != std::string::npos ||
                          description.find("uncorrectable") != std::string::npos;
    if (!is_fault) continue;
    ++faults;
    EXPECT_THAT(ErrorText<DeviceFault>([&] { Throw(std::stoi((*i)[2])); }), HasSubstr("; "))
        << (*i)[1];
  }
  EXPECT_GE(faults, 10);
}

// These errors lose nothing, so the advice mentions no loss.
TEST_F(CudaCheckTest, ErrorsThatMayPassAreNoFaults) {
  for (const cudaError_t status : {cudaErrorUnknown, cudaErrorDevicesUnavailable}) {
    try {
      Throw(status);
    } catch (const DeviceFault& error) {
      FAIL() << error.what();
    } catch (const DeviceError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("; "), Not(HasSubstr("lost"))));
    }
  }
}

// Launches then wait for their work, so the call that gets the error has caused it.
TEST_F(CudaCheckTest, WhereLaunchesBlockThePlaceIsRight) {
  ::setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  try {
    Throw(cudaErrorIllegalAddress);
    FAIL();
  } catch (const DeviceFault&) {
    FAIL() << "a fault would not be told with its place";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), Not(HasSubstr("CUDA_LAUNCH_BLOCKING")));
  }
}

}  // namespace
}  // namespace caffe::cuda
