#include "caffe/distributed/rendezvous/secret.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "caffe/error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using ::testing::HasSubstr;

class SecretFileTest : public ::testing::Test {
 protected:
  std::string ErrorOf(const std::string& path) {
    try {
      SecretInFile(path);
    } catch (const IoError& error) {
      return error.what();
    }
    return "";
  }

  testing::TemporaryFolder folder_;
};

TEST_F(SecretFileTest, IsMadeOnceForItsOwnerAlone) {
  const std::string path = folder_.path("new/cortado/secret");
  std::vector<std::string> secrets(8);
  std::vector<std::thread> threads;
  for (std::string& secret : secrets) {
    threads.emplace_back([&] { secret = SecretInFile(path); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(secrets.front().size(), 64);
  EXPECT_THAT(secrets, ::testing::Each(secrets.front()));
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600);
  EXPECT_NE(SecretInFile(folder_.path("other/secret")), secrets.front());
}

TEST_F(SecretFileTest, WhatOthersCanReadOrChooseIsRefused) {
  const std::string path = folder_.path("secret");
  SecretInFile(path);
  ::chmod(path.c_str(), 0644);
  EXPECT_THAT(ErrorOf(path), HasSubstr("can be read by others"));
  ::chmod(path.c_str(), 0600);
  const std::string link = folder_.path("link");
  ASSERT_EQ(::symlink(path.c_str(), link.c_str()), 0);
  EXPECT_THAT(ErrorOf(link), HasSubstr("cannot be read"));
  std::ofstream(folder_.path("empty")).put('\n');
  ::chmod(folder_.path("empty").c_str(), 0600);
  EXPECT_THAT(ErrorOf(folder_.path("empty")), HasSubstr("is empty"));
  EXPECT_THAT(ErrorOf(folder_.path("")), HasSubstr("is not a file"));
  EXPECT_THAT(ErrorOf("/proc/no/secret"), HasSubstr("CAFFE_SECRET"));
}

}  // namespace
}  // namespace caffe
