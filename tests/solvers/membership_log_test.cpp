#include "caffe/solvers/membership_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using ::testing::HasSubstr;

TEST(MembershipLog, LaterEntriesReplaceWhatNoLongerCounts) {
  const testing::TemporaryFolder folder;
  const std::string file = folder / "run_membership.txt";
  AddMembership(file, {0, 4});
  AddMembership(file, {57, 3, "rank 2 (host b, process 911): has ended\nwithout a word"});
  AddMembership(file, {90, 1, "rank 1: so has this one"});
  EXPECT_EQ(ReadFile(file),
            "iteration 0: 4 ranks\n"
            "iteration 57: 3 ranks, because rank 2 (host b, process 911): has ended\\x0awithout "
            "a word\n"
            "iteration 90: 1 rank, because rank 1: so has this one\n");
  AddMembership(file, {80, 4});  // resumed from an older snapshot
  const std::vector<MembershipEntry> entries = ReadMembership(file);
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[1].iteration, 57);
  EXPECT_EQ(entries[1].ranks, 3);
  EXPECT_THAT(entries[1].why, HasSubstr("rank 2 (host b"));
  EXPECT_EQ(entries[2].iteration, 80);
  EXPECT_EQ(entries[2].ranks, 4);
  AddMembership(file, {0, 2});  // from the beginning
  EXPECT_EQ(ReadFile(file), "iteration 0: 2 ranks\n");
}

TEST(MembershipLog, WhatIsNoLineIsTold) {
  const testing::TemporaryFolder folder;
  const std::string file = folder / "log.txt";
  for (const char* text : {"", "iteration 0: 0 ranks\n", "iteration -1: 2 ranks\n", "hello\n",
                           "iteration 0: 99999999 ranks\n", "iteration 9999999999: 2 ranks\n",
                           "iteration 5: 3 ranks\niteration 5: 2 ranks\n"}) {
    WriteFileAtomically(file, text);
    try {
      ReadMembership(file);
      ADD_FAILURE() << text;
    } catch (const IoError& error) {
      EXPECT_THAT(error.what(), HasSubstr("log.txt:"));
    }
  }
}

}  // namespace
}  // namespace caffe
