#include "caffe/device/vendor_library.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "caffe/error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

// The process's environment names the library's folder; it is restored at the end.
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

TEST_F(VendorLibraryTest, NamesTheFileThatWasLoaded) {
  const std::filesystem::path loaded = "/lib/x86_64-linux-gnu/libm.so.6";
  if (!std::filesystem::exists(loaded)) GTEST_SKIP() << "no " << loaded;
  VendorLibrary library("cuMath", "libm.so.6", "cumath", VendorLibrary::Visibility::kOthers);
  EXPECT_EQ(library.path(), std::filesystem::canonical(loaded));
  EXPECT_EQ(library.OptionalSymbol("cuwhatCreate"), nullptr);
  EXPECT_NE(library.OptionalSymbol("cos"), nullptr);
}

// If the interpreter of an environment is called by its full path, no variable is set.
TEST_F(VendorLibraryTest, LooksIntoTheWheelsBesidePython3) {
  const std::string own = folder_.path("lib/python3.12/site-packages/nvidia/cudnn/lib");
  const std::string other = folder_.path("lib/python3.12/site-packages/nvidia/cu13/lib");
  for (const std::string& path : {own, other, folder_.path("bin")})
    std::filesystem::create_directories(path);
  std::filesystem::create_symlink("/bin/true", folder_.path("bin/python3"));
  const std::string path = std::getenv("PATH");
  setenv("PATH", (folder_.path("bin") + ":" + path).c_str(), 1);
  const std::vector<std::string> folders = VendorLibraryFolders("cudnn");
  setenv("PATH", path.c_str(), 1);
  EXPECT_THAT(folders, AllOf(Contains(own), Contains(other)));
  EXPECT_LT(std::find(folders.begin(), folders.end(), own),
            std::find(folders.begin(), folders.end(), other));
}

// python3 itself loads the library, as with the package caffe.
TEST_F(VendorLibraryTest, LooksIntoTheWheelsOfTheRunningProgram) {
  const std::filesystem::path program = folder_.path("bin/program");
  const std::string wheel = folder_.path("lib/python3.12/site-packages/nvidia/nccl/lib");
  std::filesystem::create_directories(program.parent_path());
  std::filesystem::create_directories(wheel);
  std::filesystem::create_symlink(std::filesystem::canonical("/proc/self/exe"), program);
  const std::string command =
      program.string() +
      " --gtest_also_run_disabled_tests --gtest_filter='*DISABLED_PrintsFolders' 2>&1";
  FILE* const output = popen(command.c_str(), "r");
  std::string text(1 << 16, '\0');
  text.resize(fread(text.data(), 1, text.size(), output));
  EXPECT_EQ(pclose(output), 0);
  EXPECT_THAT(text, HasSubstr(wheel));
}

TEST_F(VendorLibraryTest, DISABLED_PrintsFolders) {  // started by the test above
  for (const std::string& folder : VendorLibraryFolders("nccl")) std::puts(folder.c_str());
}

TEST_F(VendorLibraryTest, LooksIntoTheWheelsOfAVirtualEnvironment) {
  const std::string wheel = folder_.path("lib/python3.12/site-packages/nvidia/cudnn/lib");
  std::filesystem::create_directories(wheel);
  setenv("VIRTUAL_ENV", folder_.path().c_str(), 1);
  EXPECT_THAT(VendorLibraryFolders("cudnn"), Contains(wheel));
}

}  // namespace
}  // namespace caffe
