#include "caffe/io/atomic_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "caffe/error.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

namespace fs = std::filesystem;
using testing::ErrorText;
using ::testing::HasSubstr;

class AtomicFolderTest : public ::testing::Test {
 protected:
  const testing::TemporaryFolder folder_;
  const std::string path_ = folder_ / "db", partial_ = path_ + ".partial";
};

TEST_F(AtomicFolderTest, HasItsNameOnceItIsCommitted) {
  AtomicFolder folder(path_ + "/");
  EXPECT_EQ(folder.temporary_path(), partial_);
  std::ofstream(partial_ + "/file") << "content";
  EXPECT_FALSE(fs::exists(path_));
  folder.Commit();
  EXPECT_TRUE(fs::exists(path_ + "/file"));
  EXPECT_FALSE(fs::exists(partial_));
}

TEST_F(AtomicFolderTest, LeavesNothingWithoutCommit) {
  {
    AtomicFolder folder(path_);
    std::ofstream(partial_ + "/file") << "content";
  }
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(AtomicFolderTest, RemovesWhatAKilledProcessLeft) {
  fs::create_directory(partial_);
  std::ofstream(partial_ + "/lock.mdb") << "content";
  std::ofstream(partial_ + "/data.mdb") << "content";
  AtomicFolder folder(path_);
  EXPECT_TRUE(fs::is_empty(partial_));
}

TEST_F(AtomicFolderTest, KeepsWhatItDidNotMake) {
  fs::create_directory(partial_);
  std::ofstream(partial_ + "/thesis.txt") << "precious";
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { AtomicFolder folder(path_); }),
              HasSubstr("holds other files"));
  std::ofstream(partial_ + "/data.mdb") << "content";
  fs::create_directory(partial_ + "/more");
  EXPECT_THROW(AtomicFolder{path_}, InvalidArgument);
  EXPECT_TRUE(fs::exists(partial_ + "/thesis.txt"));
}

TEST_F(AtomicFolderTest, RefusesWhatIsThereOrBeingWritten) {
  AtomicFolder folder(path_);
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { AtomicFolder second(path_); }),
              HasSubstr(path_ + ": another process is writing it"));
  EXPECT_TRUE(fs::exists(partial_));
  folder.Commit();
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { AtomicFolder second(path_); }),
              HasSubstr(path_ + ": already exists"));
  EXPECT_THAT(ErrorText<IoError>([&] { AtomicFolder second(folder_ / "none/db"); }),
              HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace caffe
