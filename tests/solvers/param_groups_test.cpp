#include "caffe/solvers/param_groups.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/solver_group.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/exact_resume.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/training_rows.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using testing::ErrorText;
using ::testing::HasSubstr;

class ParamGroupsTest : public ::testing::Test {
 protected:
  SolverParameter Parse(const std::string& options) const {
    SolverParameter solver;
    ParseTextProto(options + " base_lr: 0.05 lr_policy: 'fixed' momentum: 0.9 weight_decay: 0.01 " +
                       "random_seed: 3 solver_mode: CPU snapshot_prefix: '" + folder_.path("run") +
                       "' net_param { " + testing::ClassifierOfRows(train_, train_, 5) + " }",
                   "test", &solver);
    LayerParameter& ip2 = *std::ranges::find(*solver.mutable_net_param()->mutable_layer(), "ip2",
                                             [](const auto& layer) { return layer.name(); });
    ip2.add_param()->set_name("head_weights");
    return solver;
  }
  // Weights and bias of both layers after three iterations.
  std::vector<float> Train(const SolverParameter& param) const {
    Solver solver(param);
    solver.Step(3);
    std::vector<float> values;
    for (const Net::LearnableParam& one : solver.net().learnable_params())
      values.insert(values.end(), one.blob->cpu_data(), one.blob->cpu_data() + one.blob->count());
    return values;
  }
  // The same multipliers through `param` of a layer.
  SolverParameter WithParam(const std::string& layer, int index, float lr, float decay) const {
    SolverParameter solver = Parse("");
    for (LayerParameter& one : *solver.mutable_net_param()->mutable_layer()) {
      if (one.name() != layer) continue;
      while (one.param_size() <= index) one.add_param();
      one.mutable_param(index)->set_lr_mult(lr);
      one.mutable_param(index)->set_decay_mult(decay);
    }
    return solver;
  }

  const testing::TemporaryFolder folder_, data_;
  const std::string train_ = testing::WriteTrainingRows(data_.path("train"), 30);
};

TEST(ParamGroupPatternsTest, StarsAndQuestionMarks) {
  EXPECT_TRUE(MatchesPattern("conv1.0", "conv1.0"));
  EXPECT_FALSE(MatchesPattern("conv1.0", "conv1.1"));
  EXPECT_TRUE(MatchesPattern("*.1", "conv1.1"));
  EXPECT_FALSE(MatchesPattern("*.1", "conv1.10"));
  EXPECT_TRUE(MatchesPattern("conv?.*", "conv2.0"));
  EXPECT_FALSE(MatchesPattern("conv?.*", "conv12.0"));
  EXPECT_TRUE(MatchesPattern("*", ""));
  EXPECT_TRUE(MatchesPattern("a*b*c", "a_b_b_c"));
  EXPECT_FALSE(MatchesPattern("a*b*c", "a_b_b_c_"));
  EXPECT_FALSE(MatchesPattern("", "a"));
  EXPECT_FALSE(MatchesPattern("?", ""));
  EXPECT_TRUE(MatchesPattern("**a", "ba"));
}

// The results are the same as with lr_mult and decay_mult in the net.
TEST_F(ParamGroupsTest, MultipliesRatesAndDecays) {
  EXPECT_EQ(Train(Parse("param_group { name: 'ip1.0' lr_mult: 0.5 decay_mult: 4 }")),
            Train(WithParam("ip1", 0, 0.5f, 4)));
  EXPECT_EQ(Train(Parse("param_group { name: '*p1.?' lr_mult: 2 } "
                        "param_group { name: 'ip1.1' }")),
            Train(WithParam("ip1", 0, 2, 1)))
      << "of several groups the last one counts";
  EXPECT_EQ(Train(Parse("param_group { name: 'head_*' lr_mult: 0 }")),
            Train(WithParam("ip2", 0, 0, 1)));
  EXPECT_NE(Train(Parse("")), Train(Parse("param_group { name: '*' lr_mult: 2 }")));
}

TEST_F(ParamGroupsTest, MultipliesWhatTheNetSays) {
  SolverParameter param = WithParam("ip1", 0, 2, 3);
  ParseTextProto("name: 'ip1.0' lr_mult: 0.25 decay_mult: 2", "test", param.add_param_group());
  EXPECT_EQ(Train(param), Train(WithParam("ip1", 0, 0.5f, 6)));
}

TEST_F(ParamGroupsTest, RefusesGroupsWithoutParameters) {
  const auto error = [&](const std::string& options) {
    return ErrorText<InvalidArgument>([&] { Solver solver(Parse(options)); });
  };
  EXPECT_THAT(error("param_group { name: '*.0' } param_group { name: 'ip3.*' }"),
              AllOf(HasSubstr("solver: param_group 2: no parameter has the name 'ip3.*'"),
                    HasSubstr("did you mean ip")));
  EXPECT_THAT(error("param_group { name: 'ip1' }"), HasSubstr("did you mean ip1.0, ip1.1?"));
  EXPECT_THAT(error("param_group { name: 'zzzzzzzz' }"), HasSubstr("the net has ip1.0, ip1.1"));
  EXPECT_THAT(error("param_group { lr_mult: 2 }"), HasSubstr("param_group 1 has no name"));
  EXPECT_THAT(error("param_group { name: '*' lr_mult: nan }"), HasSubstr("lr_mult is nan"));
}

TEST_F(ParamGroupsTest, ResumesExactly) {
  for (const int workers : {1, 2}) {
    const testing::TemporaryFolder folder;
    SolverParameter param = Parse(
        "max_iter: 8 snapshot: 4 param_group { name: 'ip1.*' lr_mult: 3 } "
        "param_group { name: '*.1' decay_mult: 0 }");
    param.set_snapshot_prefix(folder.path("run"));
    testing::ExpectExactResume(param, folder.path(""), 4, workers);
  }
}

}  // namespace
}  // namespace caffe
