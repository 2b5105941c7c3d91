#include "caffe/core/module.hpp"

#include <gmock/gmock.h>

#include "caffe/error.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(ModuleTest, SaysThatAModuleWasNotBuilt) {
  EXPECT_THAT([] { LoadModule("caffe_no_such_module", "open", "videos need a reel"); },
              ThrowsMessage<Unsupported>(
                  AllOf(HasSubstr("videos need a reel: "),
                        HasSubstr("libcaffe_no_such_module.so is not there; build all of"))));
}

}  // namespace
}  // namespace caffe
