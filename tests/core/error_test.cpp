#include "caffe/error.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <typeinfo>

namespace caffe {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

template <typename E>
std::string TextOf(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const E& error) {
    return typeid(error) == typeid(E) ? error.what() : "another type";
  }
  return "nothing thrown";
}

TEST(ErrorTest, ContextKeepsTheType) {
  EXPECT_EQ(
      TextOf<InvalidArgument>([] { WithContext("net 'a'", [] { throw InvalidArgument("b"); }); }),
      "net 'a': b");
  EXPECT_EQ(TextOf<Unsupported>([] { WithContext("x", [] { throw Unsupported("b"); }); }), "x: b");
  EXPECT_EQ(TextOf<IoError>([] { WithContext("x", [] { throw IoError("b"); }); }), "x: b");
  EXPECT_EQ(TextOf<DeviceError>([] { WithContext("x", [] { throw DeviceError("b"); }); }), "x: b");
  // An internal error already says where it is.
  EXPECT_EQ(TextOf<InternalError>([] { WithContext("x", [] { throw InternalError("b"); }); }), "b");
}

TEST(ErrorTest, ContextsNestAndPassResultsThrough) {
  EXPECT_EQ(WithContext("x", [] { return 5; }), 5);
  EXPECT_EQ(TextOf<InvalidArgument>([] {
              WithContext("outer",
                          [] { WithContext("inner", [] { Require(false, "n is ", 3); }); });
            }),
            "outer: inner: n is 3");
}

TEST(ErrorTest, RequireAndAssert) {
  EXPECT_NO_THROW(Require(true, "unused"));
  const std::string text =
      TextOf<InternalError>([] { CAFFE_ASSERT(1 > 2, "sizes ", 1, " and ", 2); });
  EXPECT_THAT(text, StartsWith("internal error at "));
  EXPECT_THAT(text, HasSubstr("1 > 2 sizes 1 and 2"));
  EXPECT_THAT(text, HasSubstr("error_test.cpp"));
}

}  // namespace
}  // namespace caffe
