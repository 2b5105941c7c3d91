#include "caffe/cuda/vendor_library.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "caffe/error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe::cuda {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

// The library's folder is one of the process's environment; put back at the end.
class VendorLibraryTest : public ::testing::Test {
 protected:
  void TearDown() override { unsetenv("CAFFE_CUDA_LIBRARY_PATH"), unsetenv("VIRTUAL_ENV"); }

  testing::TemporaryFolder folder_;
};

std::string MessageOf(VendorLibrary& library, const char* symbol) {
  try {
    library.Symbol(symbol);
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "";
}

TEST_F(VendorLibraryTest, SaysWhatIsMissingAndHowToGetIt) {
  VendorLibrary library("cuWhat 9", "libcuwhat.so.9", "cuwhat");
  EXPECT_THAT(MessageOf(library, "cuwhatCreate"),
              AllOf(HasSubstr("cuWhat 9 (libcuwhat.so.9) is not found"),
                    HasSubstr("nvidia-cuwhat-cu13"), HasSubstr("CAFFE_CUDA_LIBRARY_PATH")));
}

TEST_F(VendorLibraryTest, LoadsFromTheFoldersThatTheUserNames) {
  const std::filesystem::path loaded = "/lib/x86_64-linux-gnu/libm.so.6";
  if (!std::filesystem::exists(loaded)) GTEST_SKIP() << "no " << loaded;
  std::filesystem::create_symlink(loaded, folder_.path("libcuwhat.so.9"));
  setenv("CAFFE_CUDA_LIBRARY_PATH", ("/nowhere:" + folder_.path()).c_str(), 1);
  VendorLibrary library("cuWhat 9", "libcuwhat.so.9", "cuwhat");
  EXPECT_NE(library.Symbol("cos"), nullptr);
  EXPECT_THAT(MessageOf(library, "cuwhatCreate"), HasSubstr("has no cuwhatCreate"));
}

TEST_F(VendorLibraryTest, LooksIntoTheWheelsOfAVirtualEnvironment) {
  const std::string wheel = folder_.path("lib/python3.12/site-packages/nvidia/cudnn/lib");
  std::filesystem::create_directories(wheel);
  setenv("VIRTUAL_ENV", folder_.path().c_str(), 1);
  EXPECT_THAT(VendorLibraryFolders("cudnn"), Contains(wheel));
}

}  // namespace
}  // namespace caffe::cuda
