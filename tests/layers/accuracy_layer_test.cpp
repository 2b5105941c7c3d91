#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "tests/support/error_text.hpp"

namespace caffe {
namespace {

using testing::ErrorText;
using ::testing::HasSubstr;

// 8 items of 3 classes.
void MakeNet(int top_k) {
  NetParameter param;
  ParseTextProto(StrCat(R"(
    layer { name: 'in' type: 'DummyData' top: 'scores' top: 'labels'
            dummy_data_param { shape { dim: 8 dim: 3 } shape { dim: 8 } } }
    layer { name: 'accuracy' type: 'Accuracy' bottom: 'scores' bottom: 'labels' top: 'accuracy'
            accuracy_param { top_k: )",
                        top_k, " } }"),
                 "accuracy", &param);
  Net net(param);
}

// Among as many scores as there are classes every label is found, whatever the net says.
TEST(AccuracyLayerTest, TopKLiesWithinTheClassesHoweverLargeTheBatch) {
  EXPECT_NO_THROW(MakeNet(3));
  EXPECT_THAT(ErrorText<InvalidArgument>([] { MakeNet(4); }),
              HasSubstr("top_k is 4, but there are 3 classes"));
  EXPECT_THAT(ErrorText<InvalidArgument>([] { MakeNet(0); }),
              HasSubstr("top_k is 0, but there are 3 classes"));
}

}  // namespace
}  // namespace caffe
