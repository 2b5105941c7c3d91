#include "caffe/decode_limit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/error_text.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using testing::ErrorText;
using ::testing::HasSubstr;

constexpr uint64_t kMiB = uint64_t{1} << 20;

class DecodeLimitTest : public ::testing::Test {
 protected:
  void TearDown() override { SetMaxDecodedMb(before_); }

 private:
  const int64_t before_ = MaxDecodedMb();
};

TEST_F(DecodeLimitTest, IsOneGibibyteAtFirst) {
  EXPECT_EQ(MaxDecodedMb(), 1024);
  EXPECT_NO_THROW(CheckDecodedBytes(1024 * kMiB, 1, "x"));
  EXPECT_THROW(CheckDecodedBytes(1024 * kMiB + 1, 1, "x"), IoError);
}

TEST_F(DecodeLimitTest, IsOfTheLimitAndTheFileTheLarger) {
  SetMaxDecodedMb(2);
  EXPECT_NO_THROW(CheckDecodedBytes(2 * kMiB, 0, "x"));
  EXPECT_THROW(CheckDecodedBytes(2 * kMiB + 1, 0, "x"), IoError);
  EXPECT_NO_THROW(CheckDecodedBytes(160 * kMiB, 10 * kMiB, "x"));
  EXPECT_THROW(CheckDecodedBytes(160 * kMiB + 1, 10 * kMiB, "x"), IoError);
}

TEST_F(DecodeLimitTest, SaysWhatTheNumbersAre) {
  SetMaxDecodedMb(3);
  EXPECT_THAT(ErrorText<IoError>([] { CheckDecodedBytes(9999999, 77, "a.h5: '", "data", "'"); }),
              AllOf(HasSubstr("a.h5: 'data' would take 9999999 bytes of memory"), HasSubstr("77"),
                    HasSubstr("3 MiB"), HasSubstr("-max_decoded_mb")));
}

TEST_F(DecodeLimitTest, RefusesLimitsThatAreNone) {
  EXPECT_THROW(SetMaxDecodedMb(0), InvalidArgument);
  EXPECT_THROW(SetMaxDecodedMb(-5), InvalidArgument);
  EXPECT_THROW(SetMaxDecodedMb(int64_t{1} << 44), InvalidArgument);
  EXPECT_EQ(MaxDecodedMb(), 1024);
}

}  // namespace
}  // namespace caffe
