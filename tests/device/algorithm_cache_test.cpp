#include "caffe/device/algorithm_cache.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "caffe/core/host_name.hpp"
#include "caffe/error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

class AlgorithmCacheTest : public ::testing::Test {
 protected:
  testing::TemporaryFolder folder_;
  const std::string file_ = folder_.path("a/b/algorithms.tsv");
};

TEST_F(AlgorithmCacheTest, KnowsNothingAtFirst) {
  EXPECT_EQ(AlgorithmCache(file_).Find("conv 3x3"), std::nullopt);
}

TEST_F(AlgorithmCacheTest, RemembersInTheNextProcess) {
  AlgorithmCache(file_).Store("conv 3x3", "eng51");
  AlgorithmCache(file_).Store("conv 1x1", "eng0");
  AlgorithmCache next(file_);
  EXPECT_EQ(next.Find("conv 3x3"), "eng51");
  EXPECT_EQ(next.Find("conv 1x1"), "eng0");
  EXPECT_EQ(next.Find("conv"), std::nullopt);
}

TEST_F(AlgorithmCacheTest, TheLastMeasurementCounts) {
  AlgorithmCache cache(file_);
  cache.Store("conv", "eng1");
  cache.Store("conv", "eng2");
  EXPECT_EQ(cache.Find("conv"), "eng2");
  EXPECT_EQ(AlgorithmCache(file_).Find("conv"), "eng2");
}

TEST_F(AlgorithmCacheTest, ALineThatWasTornIsPassedOver) {
  AlgorithmCache(file_).Store("conv", "eng1");
  std::ofstream(file_, std::ios::app) << "torn";
  EXPECT_EQ(AlgorithmCache(file_).Find("conv"), "eng1");
}

TEST_F(AlgorithmCacheTest, WhatIsWrittenAfterATornLineIsKept) {
  AlgorithmCache(file_).Store("conv", "eng1");
  std::ofstream(file_, std::ios::app) << "torn";
  AlgorithmCache(file_).Store("gemm", "alg1");
  EXPECT_EQ(AlgorithmCache(file_).Find("gemm"), "alg1");
}

TEST_F(AlgorithmCacheTest, DamageIsReportedOnceAndIgnored) {
  std::filesystem::create_directories(folder_.path("a/b"));
  std::ofstream(file_) << "conv\teng1\n" << std::string(3, '\0') << "\tx\nno tab\n\t\n";
  ::testing::internal::CaptureStderr();
  AlgorithmCache cache(file_);
  EXPECT_EQ(cache.Find("conv"), "eng1");
  EXPECT_EQ(cache.Find("other"), std::nullopt);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log,
              ::testing::HasSubstr("3 of 4 lines are damaged and ignored, the first is line 2"));
  EXPECT_EQ(log.find("damaged"), log.rfind("damaged"));
}

TEST_F(AlgorithmCacheTest, ThatOfAnotherChipIsToldOnce) {
  AlgorithmCache(file_).Store("A100|conv", "eng1");
  ::testing::internal::CaptureStderr();
  AlgorithmCache cache(file_);
  EXPECT_EQ(cache.Find("H200|conv"), std::nullopt);
  EXPECT_EQ(cache.Find("H200|gemm"), std::nullopt);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, ::testing::HasSubstr("has measurements of A100 and none of H200"));
  EXPECT_EQ(log.find("A100"), log.rfind("A100"));
}

// Attempts belong to processes that have ended; for other hosts this is assumed after ten minutes.
class AttemptTest : public AlgorithmCacheTest {
 protected:
  // Attempts of three processes that ran one after the other.
  void Write(const std::string& algorithm, const std::string& host, int process, int64_t time) {
    for (int lost = 0; lost < 3; ++lost)
      WriteOf(StrCat(lost), algorithm, host, process, time, lost);
  }
  void WriteOf(const std::string& start, const std::string& algorithm, const std::string& host,
               int process, int64_t time, int lost) {
    std::filesystem::create_directories(folder_.path("a/b"));
    std::ofstream(file_, std::ios::app)
        << "conv\t?" << algorithm << '\t' << host << '\t' << process << "\tstart" << process
        << start << '\t' << time << '\t' << lost << '\n';
  }
  bool HasCrashed(const std::string& algorithm) {
    return AlgorithmCache(file_).HasCrashed("conv", algorithm);
  }
  // The number of lost starts that an attempt at the algorithm records.
  std::string LostStarts(const std::string& algorithm) {
    EXPECT_TRUE(AlgorithmCache(file_).Try("conv", algorithm));
    std::ifstream file(file_);
    std::string line, last;
    while (std::getline(file, line)) last = line;
    return last.substr(last.rfind('\t') + 1);
  }
  static constexpr int kGone = 1 << 30;  // no process has this number
  const int64_t now_ = std::time(nullptr);
};

TEST_F(AttemptTest, TheLastOneOfThreeStartsThatAreGoneCrashed) {
  Write("eng1", HostName(), kGone, now_);
  Write("eng2", HostName(), kGone, now_);
  EXPECT_FALSE(HasCrashed("eng1"));
  EXPECT_TRUE(HasCrashed("eng2"));
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(AlgorithmCache(file_).Try("conv", "eng2"));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::HasSubstr("delete the lines of " + file_ + " that begin with this key"));
  EXPECT_TRUE(AlgorithmCache(file_).Try("conv", "eng1"));
}

// A user may have ended these processes.
TEST_F(AttemptTest, OneThatIsLostTwiceIsTriedAgain) {
  EXPECT_EQ(LostStarts("eng1"), "0");
  WriteOf("a", "eng1", HostName(), kGone, now_, 0);
  EXPECT_EQ(LostStarts("eng1"), "1");
  WriteOf("b", "eng1", HostName(), kGone, now_, 1);
  EXPECT_EQ(LostStarts("eng1"), "2");
  WriteOf("c", "eng1", HostName(), kGone, now_, 2);
  EXPECT_TRUE(HasCrashed("eng1"));
}

TEST_F(AttemptTest, RanksThatAreKilledTogetherAreOneStart) {
  for (const char* rank : {"a", "b", "c", "d"}) WriteOf(rank, "eng1", HostName(), kGone, now_, 0);
  EXPECT_FALSE(HasCrashed("eng1"));
  EXPECT_EQ(LostStarts("eng1"), "1");
}

TEST_F(AttemptTest, RanksThatRunDoNotCountEachOther) {
  for (const char* rank : {"a", "b", "c", "d"}) WriteOf(rank, "eng1", HostName(), 1, now_, 0);
  EXPECT_EQ(LostStarts("eng1"), "0");
}

TEST_F(AttemptTest, OfOldFilesEachIsTheFirst) {
  std::filesystem::create_directories(folder_.path("a/b"));
  std::ofstream(file_) << "conv\t?eng1\tgone\t1\tstart\t1000\n";
  EXPECT_EQ(LostStarts("eng1"), "1");
}

TEST_F(AttemptTest, OneThatCostTheDeviceIsLeftOutAtOnce) {
  AlgorithmCache(file_).LeaveOut("conv", "eng1");
  EXPECT_TRUE(HasCrashed("eng1"));
  EXPECT_FALSE(HasCrashed("eng2"));
  EXPECT_FALSE(AlgorithmCache(file_).HasCrashed("gemm", "eng1"));
  EXPECT_FALSE(AlgorithmCache(file_).Try("conv", "eng1"));
  AlgorithmCache(file_).Store("conv", "eng2");
  EXPECT_TRUE(HasCrashed("eng1"));
  EXPECT_EQ(AlgorithmCache(file_).Find("conv"), "eng2");
}

TEST_F(AttemptTest, ThoseOfProcessesThatLiveAreUnderWay) {
  Write("eng1", HostName(), 1, now_);
  EXPECT_FALSE(HasCrashed("eng1"));
  Write("eng2", "elsewhere", 5, now_);
  EXPECT_FALSE(HasCrashed("eng2"));
  Write("eng3", "elsewhere", 6, now_ - 1000);
  EXPECT_TRUE(HasCrashed("eng3"));
}

// The first process of a container has the same number each time.
TEST_F(AttemptTest, AnEarlierProcessWithOurNumberIsGone) {
  Write("eng1", HostName(), getpid(), now_);
  EXPECT_TRUE(HasCrashed("eng1"));
}

TEST_F(AttemptTest, AMeasurementEndsThem) {
  Write("eng1", HostName(), kGone, now_);
  AlgorithmCache(file_).Store("conv", "eng2");
  EXPECT_FALSE(HasCrashed("eng1"));
  EXPECT_EQ(AlgorithmCache(file_).Find("conv"), "eng2");
}

TEST_F(AttemptTest, GivingUpEndsThem) {
  Write("eng1", HostName(), kGone, now_);
  Write("", HostName(), kGone, now_);
  EXPECT_FALSE(HasCrashed("eng1"));
  AlgorithmCache(file_).GiveUp("conv");
  EXPECT_EQ(AlgorithmCache(file_).Find("conv"), std::nullopt);
}

TEST_F(AttemptTest, OnesOwnAreNoCrash) {
  AlgorithmCache cache(file_);
  EXPECT_TRUE(cache.Try("conv", "eng1"));
  EXPECT_TRUE(cache.Try("conv", "eng1"));
  EXPECT_FALSE(cache.HasCrashed("conv", "eng1"));
}

class CompactionTest : public AlgorithmCacheTest {
 protected:
  void WriteManyLines(const std::string& more) {
    std::filesystem::create_directories(folder_.path("a/b"));
    std::ofstream file(file_);
    for (int i = 0; i < 2000; ++i) file << "conv\teng" << i << '\n';
    file << more;
  }
  std::string Text() const {
    std::ifstream file(file_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

TEST_F(CompactionTest, KeepsWhatCounts) {
  const std::string attempt = "gemm\t?alg1\telsewhere\t1\tstart\t1000\t2\n";
  WriteManyLines("gemm\t?alg1\telsewhere\t2\tgaveup\t1000\t0\n" + attempt +
                 "gemm\t?\telsewhere\t2\tgaveup\t1000\t0\nconv\t!eng5\n");
  EXPECT_EQ(AlgorithmCache(file_).Find("conv"), "eng1999");
  EXPECT_EQ(Text(), "conv\teng1999\nconv\t!eng5\n" + attempt);
  AlgorithmCache next(file_);
  EXPECT_EQ(next.Find("conv"), "eng1999");
  EXPECT_TRUE(next.HasCrashed("conv", "eng5"));
  EXPECT_TRUE(next.HasCrashed("gemm", "alg1"));
}

TEST_F(CompactionTest, ATornLineIsDropped) {
  WriteManyLines("torn");
  AlgorithmCache(file_).Store("gemm", "alg1");
  EXPECT_EQ(Text(), "conv\teng1999\ngemm\talg1\n");
}

TEST_F(CompactionTest, ALinkAndPermissionsStay) {
  namespace fs = std::filesystem;
  WriteManyLines("");
  fs::permissions(file_, fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_write);
  const std::string link = folder_.path("link");
  fs::create_symlink(file_, link);
  EXPECT_EQ(AlgorithmCache(link).Find("conv"), "eng1999");
  EXPECT_EQ(Text(), "conv\teng1999\n");
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(fs::status(file_).permissions(),
            fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_write);
}

// The environment names, by mistake, a text that is not a cache.
TEST_F(CompactionTest, WhatItCannotReadStays) {
  std::filesystem::create_directories(folder_.path("a/b"));
  const std::string text(3000, '\n');
  std::ofstream(file_) << text;
  EXPECT_EQ(AlgorithmCache(file_).Find("conv"), std::nullopt);
  EXPECT_EQ(Text(), text);
}

// Processes for several GPUs of a machine start together like this. One of them replaces the file.
TEST_F(CompactionTest, ProcessesThatWriteTogetherLoseNothing) {
  WriteManyLines("");
  constexpr int kProcesses = 4, kKeys = 100;
  const std::string algorithm(300, 'e');
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      AlgorithmCache cache(file_);
      for (int key = 0; key < kKeys; ++key) {
        const std::string name = StrCat("H200|", process, " ", key);
        if (cache.Try(name, "eng1")) cache.Store(name, StrCat(algorithm, process, " ", key));
      }
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  ::testing::internal::CaptureStderr();
  AlgorithmCache cache(file_);
  for (int process = 0; process < kProcesses; ++process) {
    for (int key = 0; key < kKeys; ++key) {
      const std::string what = StrCat(process, " ", key);
      EXPECT_EQ(cache.Find("H200|" + what), algorithm + what);
    }
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

// Another process has the lock and has written half of a line, which could pass for a whole one.
TEST_F(CompactionTest, ALineThatIsStillWrittenIsNeitherReadNorDamaged) {
  std::filesystem::create_directories(folder_.path("a/b"));
  std::ofstream(file_) << "H200|a\teng1\nH200|b\teng";
  const int writer = open(file_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  ASSERT_EQ(flock(writer, LOCK_SH), 0);
  ::testing::internal::CaptureStderr();
  AlgorithmCache cache(file_);
  EXPECT_EQ(cache.Find("H200|a"), "eng1");
  EXPECT_EQ(cache.Find("H200|b"), std::nullopt);
  ASSERT_EQ(write(writer, "23\n", 3), 3);
  close(writer);
  cache.Store("H200|c", "eng3");
  AlgorithmCache after(file_);
  EXPECT_EQ(after.Find("H200|b"), "eng23");
  EXPECT_EQ(after.Find("H200|c"), "eng3");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(AlgorithmCacheFileTest, DevNullAndNoFileKeepNothing) {
  const char* const before = std::getenv("CAFFE_ALGORITHM_CACHE");
  const std::string restored = before == nullptr ? "" : before;
  setenv("CAFFE_ALGORITHM_CACHE", "/dev/null", 1);
  EXPECT_EQ(AlgorithmCache::FileOfUser(), "");
  EXPECT_EQ(AlgorithmCache::FileOfUser(".cpu"), "");
  setenv("CAFFE_ALGORITHM_CACHE", "/tmp/algorithms", 1);
  EXPECT_EQ(AlgorithmCache::FileOfUser(".cpu"), "/tmp/algorithms.cpu");
  setenv("CAFFE_ALGORITHM_CACHE", "", 1);  // as if unset
  EXPECT_THAT(AlgorithmCache::FileOfUser(".cpu"),
              ::testing::EndsWith("/cortado/algorithms.tsv.cpu"));
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const std::string old_cache = cache == nullptr ? "" : cache;
  setenv("XDG_CACHE_HOME", "relative", 1);  // not valid by the XDG specification
  EXPECT_THAT(AlgorithmCache::FileOfUser(), ::testing::Not(::testing::StartsWith("relative")));
  setenv("XDG_CACHE_HOME", old_cache.c_str(), 1);
  setenv("CAFFE_ALGORITHM_CACHE", restored.c_str(), 1);
}

TEST(AlgorithmCacheFileTest, WithoutAFileOneRunRemembers) {
  ::testing::internal::CaptureStderr();
  AlgorithmCache cache("");
  EXPECT_TRUE(cache.Try("H200|conv", "eng1"));
  cache.Store("H200|conv", "eng1");
  EXPECT_EQ(cache.Find("H200|conv"), "eng1");
  EXPECT_EQ(cache.keeper(), "this process");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(AlgorithmCacheTest, AFileThatCannotBeWrittenCostsNoMoreThanMeasurements) {
  AlgorithmCache cache("/proc/no/such/place");
  cache.Store("conv", "eng1");
  EXPECT_EQ(cache.Find("conv"), "eng1");
}

}  // namespace
}  // namespace caffe
