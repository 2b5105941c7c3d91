#include "caffe/io/solver_overrides.hpp"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "caffe/error.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using ::testing::ElementsAre;
using testing::ErrorText;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SolverOverridesTest : public ::testing::Test {
 protected:
  std::string WriteNet(const std::string& name) {
    std::ofstream(folder_ / name) << "name: '" << name
                                  << "' layer { name: 'ip' type: 'InnerProduct' bottom: 'x' "
                                     "top: 'y' inner_product_param { num_output: 2 } }";
    return folder_ / name;
  }
  SolverParameter Solver(const std::string& text) {
    SolverParameter solver;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &solver));
    return solver;
  }
  static int Outputs(const NetParameter& net) {
    return net.layer(0).inner_product_param().num_output();
  }

  testing::TemporaryFolder folder_;
  std::string net_file_;
};

const char kOutputs[] = "layer[ip].inner_product_param.num_output=7";

TEST_F(SolverOverridesTest, ReadsTheNetThatALayerIsOf) {
  const std::string file = WriteNet("net");
  SolverParameter solver = Solver("base_lr: 1 net: '" + file + "'");
  EXPECT_THAT(OverrideSolver("base_lr=2", &solver, &net_file_), ElementsAre("base_lr: 1 -> 2"));
  EXPECT_EQ(solver.net(), file);
  EXPECT_THAT(net_file_, IsEmpty());
  EXPECT_THAT(OverrideSolver(kOutputs, &solver, &net_file_),
              ElementsAre("layer[ip].inner_product_param.num_output: 2 -> 7"));
  EXPECT_FALSE(solver.has_net());
  EXPECT_EQ(net_file_, file);
  EXPECT_EQ(Outputs(solver.net_param()), 7);
  OverrideSolver("net_param.name=other", &solver, &net_file_);
  EXPECT_EQ(solver.net_param().name(), "other");
}

TEST_F(SolverOverridesTest, ChangesEachNetThatHasThePath) {
  const std::string nets =
      "train_net: '" + WriteNet("train") + "' test_net: '" + WriteNet("test") + "'";
  SolverParameter solver = Solver(nets);
  EXPECT_EQ(OverrideSolver(kOutputs, &solver, &net_file_).size(), 2);
  EXPECT_EQ(Outputs(solver.train_net_param()), 7);
  EXPECT_EQ(Outputs(solver.test_net_param(0)), 7);
  OverrideSolver("test_net_param[0].layer[ip].inner_product_param.num_output=8", &solver,
                 &net_file_);
  EXPECT_EQ(Outputs(solver.train_net_param()), 7);
  EXPECT_EQ(Outputs(solver.test_net_param(0)), 8);
}

TEST_F(SolverOverridesTest, SaysWhichNetIsMissing) {
  SolverParameter solver = Solver("base_lr: 1");
  const auto error = [&](const std::string& text) {
    return ErrorText<InvalidArgument>([&] { OverrideSolver(text, &solver, &net_file_); });
  };
  EXPECT_THAT(error(kOutputs), HasSubstr("the solver names no net"));
  EXPECT_THAT(error("net_param.name=x"), HasSubstr("the solver has neither net nor net_param"));
  solver.set_net("gone.prototxt");
  EXPECT_THAT(error(kOutputs), HasSubstr("solver: net is 'gone.prototxt', and no such file"));
}

}  // namespace
}  // namespace caffe
