#include "caffe/data/module.hpp"

#include <gmock/gmock.h>

#include "caffe/error.hpp"

namespace caffe::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(ModuleTest, SaysThatAModuleWasNotBuilt) {
  EXPECT_THAT([] { LoadModule("caffe_no_such_module", "open", "moving pictures need a reel"); },
              ThrowsMessage<Unsupported>(
                  AllOf(HasSubstr("moving pictures need a reel: "),
                        HasSubstr("libcaffe_no_such_module.so is not there; build all of"))));
}

}  // namespace
}  // namespace caffe::data
