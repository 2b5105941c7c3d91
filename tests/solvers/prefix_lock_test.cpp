#include "caffe/solvers/prefix_lock.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "caffe/io/atomic_file.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

TEST(PrefixLockTest, RemovesItsFile) {
  const testing::TemporaryFolder folder;
  { const PrefixLock lock(folder.path("run")); }
  EXPECT_FALSE(std::filesystem::exists(folder.path("run.lock")));
}

// Somebody has removed the file, and another run has created its own.
TEST(PrefixLockTest, LeavesTheFileOfAnotherRun) {
  const testing::TemporaryFolder folder;
  std::optional<PrefixLock> lock(folder.path("run"));
  std::filesystem::remove(folder.path("run.lock"));
  WriteFileAtomically(folder.path("run.lock"), "");
  lock.reset();
  EXPECT_TRUE(std::filesystem::exists(folder.path("run.lock")));
}

}  // namespace
}  // namespace caffe
