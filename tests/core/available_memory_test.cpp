#include "caffe/core/available_memory.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

constexpr uint64_t kMebibyte = 1 << 20;
constexpr const char* kMachine =
    "MemTotal:        4194304 kB\nMemFree:          102400 kB\nMemAvailable:    2097152 kB\n"
    "HugePages_Total:       0\nSwapTotal:       524288 kB\nSwapFree:        102400 kB\n";

class AvailableMemoryTest : public ::testing::Test {
 protected:
  void Write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = folder_.path(file);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << '\n';
  }
  std::optional<uint64_t> Available(const std::string& groups) const {
    return AvailableMemoryOf(kMachine, groups, folder_.path(""));
  }

  const testing::TemporaryFolder folder_;
};

TEST_F(AvailableMemoryTest, WithoutGroupsItIsTheMachines) {
  EXPECT_EQ(Available(""), (2048 + 100) * kMebibyte);
  EXPECT_EQ(Available("0::/\n4:cpu:/a\n"), (2048 + 100) * kMebibyte);
}

TEST_F(AvailableMemoryTest, ASystemThatDoesNotSaySaysNothing) {
  EXPECT_EQ(AvailableMemoryOf("MemTotal: 4194304 kB\n", "", folder_.path("")), std::nullopt);
}

TEST_F(AvailableMemoryTest, AGroupsLimitCountsLessWhatItUses) {
  Write("pods/one/memory.max", std::to_string(512 * kMebibyte));
  Write("pods/one/memory.current", std::to_string(200 * kMebibyte));
  Write("pods/one/memory.swap.max", "0");
  EXPECT_EQ(Available("0::/pods/one\n"), 312 * kMebibyte);
  EXPECT_EQ(Available("0::/pods/one/init.scope\n"), 312 * kMebibyte);
  EXPECT_EQ(Available("0::/pods\n"), (2048 + 100) * kMebibyte);
}

TEST_F(AvailableMemoryTest, CachedFilesAreGivenBack) {
  Write("memory.max", std::to_string(512 * kMebibyte));
  Write("memory.current", std::to_string(500 * kMebibyte));
  Write("memory.stat", "anon 41943040\ninactive_file 314572800\nactive_file 104857600\nslab 5");
  Write("memory.swap.max", "max");
  EXPECT_EQ(Available("0::/\n"), (512 - 100 + 100) * kMebibyte);
}

TEST_F(AvailableMemoryTest, AGroupThatUsesAllHasNothingLeft) {
  Write("memory.max", std::to_string(64 * kMebibyte));
  Write("memory.current", std::to_string(65 * kMebibyte));
  Write("memory.swap.max", std::to_string(10 * kMebibyte));
  Write("memory.swap.current", std::to_string(4 * kMebibyte));
  EXPECT_EQ(Available("0::/\n"), 6 * kMebibyte);
}

TEST_F(AvailableMemoryTest, LimitsOfVersion1Count) {
  Write("memory/docker/a/memory.limit_in_bytes", std::to_string(256 * kMebibyte));
  Write("memory/docker/a/memory.usage_in_bytes", std::to_string(100 * kMebibyte));
  Write("memory/docker/a/memory.stat", "inactive_file 1\ntotal_inactive_file 20971520");
  Write("memory/memory.limit_in_bytes", "9223372036854771712");
  Write("memory/memory.usage_in_bytes", std::to_string(3000 * kMebibyte));
  EXPECT_EQ(Available("5:memory:/docker/a\n1:cpu:/docker/a\n"), (256 - 80 + 100) * kMebibyte);
}

TEST_F(AvailableMemoryTest, ThisSystemSays) {
  EXPECT_GT(AvailableMemory().value_or(0), kMebibyte);
}

}  // namespace
}  // namespace caffe
