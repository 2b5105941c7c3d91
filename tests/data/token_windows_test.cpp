#include "caffe/data/token_windows.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>

#include "caffe/error.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe::data {
namespace {

using ::testing::ElementsAre;
using testing::ErrorText;
using ::testing::HasSubstr;

class TokenWindowsTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(text_); }

  // The tokens 0, 1, 2, ... in two bytes each.
  void Write(int tokens, int vocabulary = 1000) const {
    Describe(R"({"format": 1, "tokens": )" + std::to_string(tokens) + R"(, "vocabulary": )" +
             std::to_string(vocabulary) + R"(, "bytes_per_token": 2, "tokenizer": "t"})");
    std::ofstream file(text_ + "/tokens.bin", std::ios::binary);
    for (int i = 0; i < tokens; ++i)
      file << static_cast<char>(i % 256) << static_cast<char>(i / 256);
  }
  void Describe(const std::string& json) const { std::ofstream(text_ + "/tokens.json") << json; }

  TokenWindowsOptions Options(bool shuffle = false, uint64_t start = 0) const {
    return {
        .folder = text_, .length = 4, .shuffle = shuffle, .seed = 7, .stream = "l", .start = start};
  }

  // The first tokens of the next sequences, whose other tokens must follow them.
  static std::vector<int> Take(TokenWindows& windows, int count) {
    std::vector<int> firsts;
    for (int i = 0; i < count; ++i) {
      const TokenWindows::Window window = windows.Next();
      for (int k = 0; k <= 4; ++k)
        EXPECT_EQ(window.tokens[k], static_cast<float>(window.first) + static_cast<float>(k));
      firsts.push_back(static_cast<int>(window.first));
    }
    return firsts;
  }

  std::string ErrorOf(const TokenWindowsOptions& options) const {
    return ErrorText<Error>([&] { TokenWindows windows(options); });
  }

  const caffe::testing::TemporaryFolder folder_;
  const std::string text_ = folder_.path("text");
};

TEST_F(TokenWindowsTest, InTurnTheyFollowEachOtherAndBeginAgain) {
  Write(15);  // three of 4 and one more are 13: two tokens are in none
  TokenWindows windows(Options());
  EXPECT_EQ(windows.count(), 3u);
  EXPECT_THAT(Take(windows, 5), ElementsAre(0, 4, 8, 0, 4));
  EXPECT_EQ(windows.consumed(), 5u);
}

TEST_F(TokenWindowsTest, EachEpochHasItsOwnOrderAndFirstToken) {
  Write(403);
  TokenWindows windows(Options(/*shuffle=*/true));
  const int count = static_cast<int>(windows.count());
  EXPECT_EQ(count, 99);
  std::set<int> rests;
  for (int epoch = 0; epoch < 20; ++epoch) {
    const std::vector<int> firsts = Take(windows, count);
    const std::set<int> sorted(firsts.begin(), firsts.end());
    EXPECT_EQ(sorted.size(), 99u);  // none twice
    EXPECT_EQ(*sorted.rbegin() - *sorted.begin(), 98 * 4);
    EXPECT_FALSE(std::is_sorted(firsts.begin(), firsts.end()));
    rests.insert(*sorted.begin());
  }
  EXPECT_EQ(*rests.rbegin(), 6);  // 403 - 1 - 99 * 4: the last token is reached
  EXPECT_EQ(*rests.begin(), 0);
}

TEST_F(TokenWindowsTest, ResumesAndDividesAmongRanks) {
  Write(403);
  TokenWindows all(Options(true));
  const std::vector<int> firsts = Take(all, 240);
  TokenWindows resumed(Options(true, 130));
  EXPECT_EQ(Take(resumed, 110), std::vector<int>(firsts.begin() + 130, firsts.end()));
  for (uint64_t rank = 0; rank < 3; ++rank) {
    TokenWindowsOptions options = Options(true);
    options.rank = rank;
    options.ranks = 3;
    options.block = 2;
    TokenWindows windows(options);
    const std::vector<int> own = Take(windows, 80);
    for (size_t i = 0; i < own.size(); ++i)
      EXPECT_EQ(own[i], firsts[i / 2 * 6 + rank * 2 + i % 2]) << rank << " " << i;
    EXPECT_EQ(windows.consumed(), 240u);
  }
}

TEST_F(TokenWindowsTest, AWholeEpochEndsWithASmallerBlock) {
  Write(45);
  TokenWindowsOptions options = Options();
  options.block = 4;
  options.whole_epochs = true;
  TokenWindows windows(options);
  EXPECT_EQ(windows.count(), 11u);
  std::vector<uint64_t> blocks;
  for (int i = 0; i < 4; ++i) {
    blocks.push_back(windows.LeftOfBlock());
    Take(windows, static_cast<int>(blocks.back()));
  }
  EXPECT_THAT(blocks, ElementsAre(4u, 4u, 3u, 4u));
}

TEST_F(TokenWindowsTest, ATextOfOneSequenceIsEnough) {
  Write(5);
  TokenWindows windows(Options(true));
  EXPECT_EQ(windows.count(), 1u);
  EXPECT_THAT(Take(windows, 2), ElementsAre(0, 0));
  Write(4);
  EXPECT_THAT(ErrorOf(Options()),
              HasSubstr("has 4 tokens; a sequence of length 4 needs 5: the last one is the label"));
}

TEST_F(TokenWindowsTest, RefusesFilesThatAreDamaged) {
  EXPECT_THAT(ErrorOf(Options()), HasSubstr("text/tokens.json: cannot open: No such file"));
  Describe("{}");
  EXPECT_THAT(ErrorOf(Options()), HasSubstr("tokens.json: format is missing or no number"));
  Describe("tokens");
  EXPECT_THAT(ErrorOf(Options()), HasSubstr("not what caffe data import-text writes"));
  Describe(R"({"format": 2})");
  EXPECT_THAT(ErrorOf(Options()), HasSubstr("format is 2, of a newer version; this one reads 1"));
  Describe(R"({"format": 1, "tokens": 1e30})");
  EXPECT_THAT(ErrorOf(Options()), HasSubstr("tokens is 1e+30; it must be from 1 to "));
  Write(100);
  std::filesystem::resize_file(text_ + "/tokens.bin", 199);
  EXPECT_THAT(ErrorOf(Options()), HasSubstr("tokens.bin: has 199 bytes, and tokens.json says 100 "
                                            "tokens of 2 bytes: 200"));
  std::filesystem::remove(text_ + "/tokens.bin");
  EXPECT_THAT(ErrorOf(Options()), HasSubstr("text/tokens.bin: cannot open"));
}

TEST_F(TokenWindowsTest, RefusesFilesThatChangeWhileTheyAreRead) {
  Write(100);
  TokenWindows windows(Options());
  Take(windows, 20);
  std::filesystem::resize_file(text_ + "/tokens.bin", 171);
  EXPECT_THAT(ErrorText<Error>([&] { Take(windows, 2); }),
              HasSubstr("tokens.bin: ends at byte 171 of 200; it was cut off while it was read"));
  Write(100, 50);
  TokenWindows other(Options());
  EXPECT_THAT(ErrorText<Error>([&] { Take(other, 13); }),
              HasSubstr("token 50 is 50, and tokens.json says 50 kinds"));
}

}  // namespace
}  // namespace caffe::data
