#include "caffe/core/module.hpp"

#include <gmock/gmock.h>

#include "caffe/error.hpp"
#include "tests/support/error_text.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using testing::ErrorText;
using ::testing::HasSubstr;

TEST(ModuleTest, SaysThatAModuleWasNotBuilt) {
  EXPECT_THAT(ErrorText<Unsupported>(
                  [] { LoadModule("caffe_no_such_module", "open", "videos need a reel"); }),
              AllOf(HasSubstr("videos need a reel: "),
                    HasSubstr("libcaffe_no_such_module.so is not there; build all of")));
}

}  // namespace
}  // namespace caffe
