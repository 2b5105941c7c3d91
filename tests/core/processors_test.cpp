#include "caffe/core/processors.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

class ProcessorsTest : public ::testing::Test {
 protected:
  void Write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = folder_.path(file);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << '\n';
  }
  std::optional<double> Limit(const std::string& groups) const {
    return ProcessorsOfGroups(groups, folder_.path(""));
  }

  const testing::TemporaryFolder folder_;
};

TEST_F(ProcessorsTest, WithoutGroupsThereIsNoLimit) {
  EXPECT_EQ(Limit(""), std::nullopt);
  EXPECT_EQ(Limit("0::/\n"), std::nullopt);
  EXPECT_EQ(Limit("no group\n4:memory:/a\n"), std::nullopt);
}

TEST_F(ProcessorsTest, TheLeastLimitOfAGroupAndThoseAboveCounts) {
  Write("cpu.max", "max 100000");
  Write("pods/cpu.max", "300000 100000");
  Write("pods/one/cpu.max", "max 100000");
  Write("pods/two/cpu.max", "150000 100000");
  EXPECT_EQ(Limit("0::/\n"), std::nullopt);
  EXPECT_EQ(Limit("0::/pods/one\n"), 3);
  EXPECT_EQ(Limit("0::/pods/two\n"), 1.5);
  EXPECT_EQ(Limit("0::/pods/two/init.scope\n"), 1.5);
}

TEST_F(ProcessorsTest, GroupsOfVersion1AreThoseOfTheirController) {
  Write("cpu/docker/a/cpu.cfs_quota_us", "50000");
  Write("cpu/docker/a/cpu.cfs_period_us", "100000");
  Write("cpu/cpu.cfs_quota_us", "-1");
  Write("cpu/cpu.cfs_period_us", "100000");
  Write("cpu,cpuacct/b/cpu.cfs_quota_us", "400000");
  Write("cpu,cpuacct/b/cpu.cfs_period_us", "100000");
  EXPECT_EQ(Limit("3:cpuset:/docker/a\n1:cpu:/docker/a\n0::/\n"), 0.5);
  EXPECT_EQ(Limit("3:cpuset:/docker/a\n"), std::nullopt);
  EXPECT_EQ(Limit("4:cpu,cpuacct:/b\n"), 4);
  EXPECT_EQ(Limit("4:cpuacct,cpu:/docker/a\n"), 0.5) << "a folder of another order";
  EXPECT_EQ(Limit("1:cpu:/\n"), std::nullopt);
}

// A container sees the host's name of its group, and the group itself at the place where all groups
// are mounted.
TEST_F(ProcessorsTest, InAContainerItsOwnGroupIsTheRoot) {
  Write("cpu/cpu.cfs_quota_us", "200000");
  Write("cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(Limit("1:cpu:/docker/0123/not/to/be/seen\n"), 2);
}

TEST_F(ProcessorsTest, AtLeastOneIsUsable) {
  EXPECT_GE(UsableProcessors(), 1);
}

}  // namespace
}  // namespace caffe
