#include "caffe/io/overrides.hpp"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "caffe/proto/caffe.pb.h"
#include "tests/support/error_text.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::ErrorText;
using ::testing::HasSubstr;

class OverridesTest : public ::testing::Test {
 protected:
  OverridesTest() {
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "base_lr: 0.5 stepvalue: 10 stepvalue: 20 net_param { name: 'n' "
        "layer { name: 'data' type: 'Data' } layer { name: 'data' type: 'Input' } "
        "layer { name: 'a.b/c=d' type: 'Convolution' bottom: 'x' } }",
        &solver_));
  }

  std::string Apply(const std::string& text) { return ApplyOverride(text, &solver_); }
  std::string Error(const std::string& text) {
    const std::string before = solver_.DebugString();
    const std::string error = ErrorText<InvalidArgument>([&] { Apply(text); });
    EXPECT_EQ(solver_.DebugString(), before) << text;
    EXPECT_THAT(error, HasSubstr("override '" + text + "': "));
    return error;
  }

  SolverParameter solver_;
};

TEST_F(OverridesTest, SetsFieldsOfEachType) {
  EXPECT_EQ(Apply("base_lr=1e-3"), "base_lr: 0.5 -> 0.001");
  EXPECT_EQ(solver_.base_lr(), 1e-3f);
  EXPECT_EQ(Apply("max_iter=7"), "max_iter: (not set) -> 7");
  EXPECT_EQ(solver_.max_iter(), 7);
  Apply("random_seed=-1");
  EXPECT_EQ(solver_.random_seed(), -1);
  Apply("test_initialization=false");
  EXPECT_FALSE(solver_.test_initialization());
  Apply("solver_mode=gpu");
  EXPECT_EQ(solver_.solver_mode(), SolverParameter::GPU);
  EXPECT_EQ(Apply("solver_mode=0"), "solver_mode: GPU -> CPU");
  EXPECT_THAT(Error("solver_mode=7"), HasSubstr("its values are CPU, GPU"));
  EXPECT_EQ(Apply("snapshot_prefix=a \"b\"\\c=d"),
            "snapshot_prefix: (not set) -> \"a \\\"b\\\"\\\\c=d\"");
  EXPECT_EQ(solver_.snapshot_prefix(), "a \"b\"\\c=d");
  Apply("snapshot_prefix=");
  EXPECT_EQ(solver_.snapshot_prefix(), "");
}

TEST_F(OverridesTest, OfTwoLengthsTheNewOneCounts) {
  solver_.set_max_epoch(90);
  Apply("max_iter=5");
  EXPECT_EQ(solver_.max_iter(), 5);
  EXPECT_FALSE(solver_.has_max_epoch());
  Apply("max_epoch=2");
  EXPECT_EQ(solver_.max_epoch(), 2);
  EXPECT_FALSE(solver_.has_max_iter());
}

TEST_F(OverridesTest, SetsListsAndTheirElements) {
  EXPECT_EQ(Apply("stepvalue=1,2,3"), "stepvalue: 10, 20 -> 1, 2, 3");
  EXPECT_THAT(solver_.stepvalue(), ElementsAre(1, 2, 3));
  EXPECT_EQ(Apply("stepvalue[1]=5"), "stepvalue[1]: 1, 2, 3 -> 1, 5, 3");
  EXPECT_THAT(solver_.stepvalue(), ElementsAre(1, 5, 3));
  EXPECT_THAT(Error("stepvalue[3]=5"), HasSubstr("'stepvalue' has 3 elements, counted from 0; 3"));
}

TEST_F(OverridesTest, FindsLayersByNameAndNumber) {
  Apply("net_param.layer[a.b/c=d].convolution_param.num_output=32");
  EXPECT_EQ(solver_.net_param().layer(2).convolution_param().num_output(), 32u);
  Apply("net_param.layer[2].convolution_param.kernel_size=3,5");
  EXPECT_THAT(solver_.net_param().layer(2).convolution_param().kernel_size(), ElementsAre(3, 5));
  Apply("net_param.layer[0].data_param.batch_size=4");
  EXPECT_EQ(solver_.net_param().layer(0).data_param().batch_size(), 4u);
}

TEST_F(OverridesTest, SuggestsNames) {
  EXPECT_THAT(Error("base_rl=1"),
              HasSubstr("SolverParameter has no field 'base_rl'; did you mean 'base_lr'?"));
  EXPECT_THAT(Error("net_param.layer[a.b/c=e].type=ReLU"),
              HasSubstr("no 'layer' has the name 'a.b/c=e'; did you mean 'a.b/c=d'?"));
  EXPECT_THAT(Error("solver_mode=GPUS"),
              AllOf(HasSubstr("its values are CPU, GPU"), HasSubstr("did you mean 'GPU'?")));
}

TEST_F(OverridesTest, SaysBothValuesWhereTypesDiffer) {
  EXPECT_THAT(Error("base_lr=fast"),
              HasSubstr("'base_lr' is of type float, now 0.5, and cannot be 'fast': "));
  EXPECT_THAT(Error("stepvalue=1,x"),
              HasSubstr("'stepvalue' is of type int32, now 10, 20, and cannot be '1,x': "));
  Error("max_iter=1.5");
  Error("max_iter=3000000000");
  Error("max_iter=");
  Error("debug_info=maybe");
  Error("base_lr=1 momentum: 2");
}

TEST_F(OverridesTest, RefusesPathsThatAreNone) {
  EXPECT_THAT(Error("base_lr"), HasSubstr("this is not FIELD=VALUE"));
  Error("=1");
  Error("net_param..name=1");
  EXPECT_THAT(Error("net_param.layer[2=1"), HasSubstr("the '[' has no ']'"));
  EXPECT_THAT(Error("net_param.layer[data].type=A"),
              HasSubstr("2 of 'layer' have the name 'data'; give a number: layer[0], layer[1]"));
  EXPECT_THAT(Error("net_param.layer.type=A"), HasSubstr("'layer' is a list; give an element's"));
  EXPECT_THAT(Error("net_param.layer[9].type=A"), HasSubstr("'layer' has 3 elements"));
  EXPECT_THAT(Error("base_lr.x=1"), HasSubstr("'base_lr' is of type float and has no fields"));
  EXPECT_THAT(Error("base_lr[0]=1"), HasSubstr("'base_lr' is not a list"));
  EXPECT_THAT(Error("net_param=1"), HasSubstr("'net_param' is a NetParameter; set one of its"));
}

}  // namespace
}  // namespace caffe
