#include "caffe/io/atomic_file.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

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

TEST(ReadFileTest, ReadsAPipeThatSomebodyWritesTo) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  // The file is also open for reading, so it neither waits for the reader nor loses it: if a reader
  // saw no writer and left, the pipe would kill a process that had just opened it to write.
  std::fstream file(folder / "pipe");
  const int pipe = ::open((folder / "pipe").c_str(), O_RDONLY | O_NONBLOCK);
  std::atomic<bool> is_read = false;
  std::thread writer([&] {
    file << std::string(100000, 'x') << std::flush;
    for (int unread = 1; unread > 0 && !is_read;) ASSERT_EQ(::ioctl(pipe, FIONREAD, &unread), 0);
    file << "end";
    file.close();
  });
  const std::string text = ReadFile(folder / "pipe");
  is_read = true;
  writer.join();
  EXPECT_EQ(text, std::string(100000, 'x') + "end");
  ::close(pipe);
}

TEST(ReadFileTest, IssuePipeThatNobodyWritesToIsAnError) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(ErrorText<IoError>([&] { ReadFile(folder / "pipe"); }),
            (folder / "pipe") + ": is a pipe that nobody writes to; give a file");
}

TEST(AtomicFileTest, KeepsTheOldFileWhenTheWriterFails) {
  const TemporaryFolder folder;
  WriteFileAtomically(folder / "a", std::string_view("old"));
  {
    AtomicFile file(folder / "a");
    file.Write("half");
  }
  EXPECT_EQ(ReadFile(folder / "a"), "old");
  EXPECT_EQ(CountFiles(folder.path()), 1);
}

TEST(AtomicFileTest, SaysHowManyBytesAFullDiskLacks) {
  AtomicFile full("/dev/full");
  EXPECT_THAT(ErrorText<IoError>([&] { full.Write("12345"); }),
              HasSubstr("/dev/full: cannot write 5 bytes: No space left on device; free space"));
}

std::string TemporaryFile(const TemporaryFolder& folder) {
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    const std::string path = entry.path().string();
    if (path.find(".tmp.") != std::string::npos) return path;
  }
  return "";
}

TEST(AtomicFileTest, WritesIntoTheFileThatItMadeWhateverBearsItsName) {
  const TemporaryFolder folder;
  WriteFileAtomically(folder / "victim", std::string_view("original"));
  AtomicFile file(folder / "a");
  const std::string temporary = TemporaryFile(folder);
  ASSERT_FALSE(temporary.empty());
  fs::remove(temporary);
  fs::create_symlink(folder / "victim", temporary);
  file.Write("secret");
  EXPECT_THAT(ErrorText<IoError>([&] { file.Commit(); }), HasSubstr("somebody replaced"));
  EXPECT_EQ(ReadFile(folder / "victim"), "original");
  EXPECT_FALSE(fs::exists(folder / "a"));
}

TEST(AtomicFileTest, TemporaryNamesCannotBeForetold) {
  const TemporaryFolder folder;
  std::set<std::string> names;
  for (int i = 0; i < 20; ++i) {
    const AtomicFile file(folder / "a");
    names.insert(TemporaryFile(folder));
  }
  EXPECT_EQ(names.size(), 20);
}

TEST(AtomicFileTest, RemovesWhatAKilledProcessLeftOfTheSameFile) {
  const TemporaryFolder folder;
  const AtomicFile living(folder / "a");
  for (const char* name : {"a.tmp.abc123", "b.tmp.abc123", "a.tmp.abc", "a.tmp"}) {
    std::ofstream(folder / name) << "half";
  }
  WriteFileAtomically(folder / "a", std::string_view("whole"));
  EXPECT_FALSE(fs::exists(folder / "a.tmp.abc123"));
  for (const char* name : {"b.tmp.abc123", "a.tmp.abc", "a.tmp"}) {
    EXPECT_TRUE(fs::exists(folder / name)) << name;
  }
  EXPECT_EQ(CountFiles(folder.path()), 5);  // including the one that is being written
}

TEST(AtomicFileTest, SeveralFilesAreDurableBeforeTheFirstAppears) {
  const TemporaryFolder folder;
  AtomicFile one(folder / "one"), two(folder / "two");
  one.Write("1");
  two.Write("2");
  one.MakeDurable();
  two.MakeDurable();
  EXPECT_FALSE(fs::exists(folder / "one"));
  one.Commit();
  two.Commit();
  EXPECT_EQ(ReadFile(folder / "one") + ReadFile(folder / "two"), "12");
  EXPECT_EQ(CountFiles(folder.path()), 2);
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

TEST(AtomicFileTest, MakesFoldersThatAreMissing) {
  const TemporaryFolder folder;
  for (int i = 0; i < 2; ++i) MakeFolders(folder / "a/b/c/");
  EXPECT_TRUE(fs::is_directory(folder / "a/b/c"));
  WriteFileAtomically(folder / "file", std::string_view("x"));
  EXPECT_THAT(ErrorText<IoError>([&] { MakeFolders(folder / "file/a"); }),
              HasSubstr("file/a: cannot make the folder: Not a directory"));
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
