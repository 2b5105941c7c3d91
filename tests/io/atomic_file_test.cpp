#include "caffe/io/atomic_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <stdexcept>

#include "caffe/error.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using testing::TemporaryFolder;

namespace fs = std::filesystem;
using ::testing::HasSubstr;

int CountFiles(const std::string& folder) {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder)) ++count;
  return count;
}

TEST(AtomicFileTest, ReplacesTheFileAndLeavesNothingElse) {
  const TemporaryFolder folder;
  WriteFileAtomically(folder / "a", std::string_view("old"));
  WriteFileAtomically(folder / "a", std::string_view("new"));
  EXPECT_EQ(ReadFile(folder / "a"), "new");
  EXPECT_EQ(CountFiles(folder.path()), 1);
}

TEST(AtomicFileTest, FollowsTheUmaskAndKeepsTheModeOfAFileThatIsReplaced) {
  const TemporaryFolder folder;
  const auto mode_of = [&](const char* name) { return fs::status(folder / name).permissions(); };
  const mode_t before = ::umask(027);
  WriteFileAtomically(folder / "new", std::string_view("x"));
  ::umask(before);
  EXPECT_EQ(mode_of("new"), fs::perms(0640));
  fs::permissions(folder / "new", fs::perms(0600));
  WriteFileAtomically(folder / "new", std::string_view("y"));
  EXPECT_EQ(mode_of("new"), fs::perms(0600));
}

TEST(AtomicFileTest, KeepsTheOldFileWhenTheWriterFails) {
  const TemporaryFolder folder;
  WriteFileAtomically(folder / "a", std::string_view("old"));
  const auto fail = [&](const std::string& temporary_path) {
    WriteFileAtomically(temporary_path, std::string_view("half"));
    throw std::runtime_error("stopped");
  };
  EXPECT_THROW(WriteFileAtomically(folder / "a", fail), std::runtime_error);
  EXPECT_EQ(ReadFile(folder / "a"), "old");
  EXPECT_EQ(CountFiles(folder.path()), 1);
}

TEST(AtomicFileTest, SaysHowManyBytesAFullDiskLacks) {
  const TemporaryFolder folder;
  const std::string error = ErrorText<IoError>(
      [&] { WriteFileAtomically(folder / "a", 123456, [](int) { return ENOSPC; }); });
  EXPECT_THAT(error, HasSubstr("cannot write 123456 bytes: No space left on device"));
  EXPECT_EQ(CountFiles(folder.path()), 0);
}

TEST(AtomicFileTest, RefusesAnEmptyName) {
  EXPECT_THAT(ErrorText<IoError>([] { WriteFileAtomically("", std::string_view("x")); }),
              HasSubstr("the file's name is empty"));
}

TEST(AtomicFileTest, NamesTheFileItCannotCreate) {
  const TemporaryFolder folder;
  EXPECT_THAT(
      ErrorText<IoError>([&] { WriteFileAtomically(folder / "no/a", std::string_view("x")); }),
      HasSubstr("no/a: cannot create: No such file or directory"));
  EXPECT_THAT(
      ErrorText<IoError>([&] { WriteFileAtomically(folder.path(), std::string_view("x")); }),
      HasSubstr("is a directory"));
}

TEST(AtomicFileTest, FollowsLinksAndWritesDevicesInPlace) {
  const TemporaryFolder folder;
  WriteFileAtomically(folder / "real", std::string_view("old"));
  fs::create_symlink(folder / "real", folder / "link");
  WriteFileAtomically(folder / "link", std::string_view("new"));
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(ReadFile(folder / "real"), "new");
  fs::create_symlink("/dev/null", folder / "null");
  WriteFileAtomically(folder / "null", std::string_view("gone"));
  EXPECT_TRUE(fs::is_character_file(folder / "null"));
}

}  // namespace
}  // namespace caffe
