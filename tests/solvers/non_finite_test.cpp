// Runs with weights, losses and tests that are not finite: such a run never ends as if it had
// succeeded, and never writes such weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <string>

#include "caffe/blob.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/solver.hpp"
#include "caffe/solver_group.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using testing::ErrorText;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

constexpr char kClassifier[] = R"(
  layer { name: "x" type: "DummyData" top: "x" top: "t"
    dummy_data_param {
      shape { dim: 4 dim: 3 } shape { dim: 4 }
      data_filler { type: "gaussian" } data_filler { type: "constant" value: 1 } } }
  layer { name: "h" type: "InnerProduct" bottom: "x" top: "h"
    inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
  layer { name: "norm" type: "BatchNorm" bottom: "h" top: "n" }
  layer { name: "ip" type: "InnerProduct" bottom: "n" top: "y"
    inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "y" bottom: "t" top: "loss" }
)";

class NonFiniteTest : public ::testing::Test {
 protected:
  SolverParameter Parse(const std::string& options, const std::string& more_layers = "",
                        const char* net = kClassifier) {
    SolverParameter param;
    ParseTextProto(StrCat("solver_mode: CPU lr_policy: 'fixed' random_seed: 1 ", options,
                          " net_param { ", net, more_layers, " }"),
                   "test", &param);
    if (!param.has_base_lr()) param.set_base_lr(0.1f);
    param.set_snapshot_prefix(folder_.path("run"));
    return param;
  }

  // Makes the gradient of ip's weights infinite in this iteration.
  static void Spoil(Solver* solver, int iteration) {
    solver->AddCallbacks({.on_gradients_ready = [solver, iteration] {
      if (solver->iter() != iteration) return;
      solver->net().layer_params("ip")[0]->mutable_cpu_diff()[4] = kInfinity;
    }});
  }

  bool Exists(const std::string& name) const { return std::filesystem::exists(folder_.path(name)); }
  // Excludes the lock of a living solver.
  int CountFiles() const {
    return static_cast<int>(std::ranges::count_if(
        std::filesystem::directory_iterator(folder_.path("")),
        [](const auto& entry) { return entry.path().extension() != ".lock"; }));
  }

  testing::TemporaryFolder folder_;
};

TEST_F(NonFiniteTest, AnUpdateThatRuinsTheWeightsAtTheEndIsAnError) {
  for (const char* format : {"BINARYPROTO", "HDF5"}) {
    for (const char* when : {"", "snapshot: 1", "snapshot: 1 snapshot_after_train: false",
                             "snapshot_after_train: false"}) {
      Solver solver(Parse(StrCat("max_iter: 1 snapshot_format: ", format, " ", when)));
      Spoil(&solver, 0);
      EXPECT_THAT(ErrorText<Error>([&] { solver.Solve(); }),
                  AllOf(HasSubstr("parameter ip.0 is not finite at element 4"),
                        HasSubstr("an update was too large")))
          << when;
      EXPECT_EQ(CountFiles(), 0) << when;
    }
  }
}

TEST_F(NonFiniteTest, WeightsOnTheWayDoNotReplaceGoodOnes) {
  WriteFileAtomically(folder_.path("run_iter_3.caffemodel"), "an earlier run's");
  Solver solver(Parse("max_iter: 5 snapshot: 1"));
  Spoil(&solver, 2);
  EXPECT_THAT(ErrorText<Error>([&] { solver.Solve(); }),
              AllOf(HasSubstr("no snapshot of iteration 3 is written: parameter ip.0"),
                    HasSubstr("the last snapshot is of iteration 2")));
  EXPECT_EQ(ReadFile(folder_.path("run_iter_3.caffemodel")), "an earlier run's");
  EXPECT_FALSE(Exists("run_iter_3.solverstate"));
  EXPECT_TRUE(Exists("run_iter_2.solverstate"));
  EXPECT_THROW(solver.Snapshot(), Error);
}

// The caller of Step() may save the net itself.
TEST_F(NonFiniteTest, TheLastStepsUpdateIsLookedAt) {
  Solver solver(Parse("max_iter: 5"));
  Spoil(&solver, 2);
  EXPECT_NO_THROW(solver.Step(2));
  EXPECT_THAT(ErrorText<Error>([&] { solver.Step(1); }),
              AllOf(HasSubstr("after iteration 3: parameter ip.0 is not finite at element 4"),
                    HasSubstr("an update was too large")));
}

TEST_F(NonFiniteTest, StatisticsAreWeights) {
  Solver solver(Parse("max_iter: 1"));
  Solver* const self = &solver;
  solver.AddCallbacks({.on_gradients_ready = [self] {
    self->net().layer_params("norm")[1]->mutable_cpu_data()[0] = kInfinity;
  }});
  EXPECT_THAT(ErrorText<Error>([&] { solver.Solve(); }), HasSubstr("parameter norm.1 is not fini"));
}

// An example is a mask of -infinity.
TEST_F(NonFiniteTest, FrozenWeightsMayBeInfinite) {
  Solver solver(Parse("max_iter: 2", R"(
    layer { name: "mask" type: "Bias" bottom: "h" top: "masked" param { lr_mult: 0 }
      bias_param { filler { type: "constant" value: -inf } } }
    layer { name: "relu" type: "ReLU" bottom: "masked" top: "masked" })"));
  EXPECT_NO_THROW(solver.Solve());
  EXPECT_TRUE(Exists("run_iter_2.solverstate"));
}

// The weights are finite, but so large that the loss of the next pass is not a number.
constexpr char kDivergingNet[] = R"(
  layer { name: "x" type: "DummyData" top: "x" top: "t"
    dummy_data_param {
      shape { dim: 4 dim: 3 } shape { dim: 4 }
      data_filler { type: "gaussian" } data_filler { type: "constant" value: 1 } } }
  layer { name: "h" type: "InnerProduct" bottom: "x" top: "h"
    inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
  layer { name: "ip" type: "InnerProduct" bottom: "h" top: "y"
    inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "y" bottom: "t" top: "loss" }
)";

TEST_F(NonFiniteTest, ALossAtTheEndThatIsNoNumberIsAnError) {
  for (const char* format : {"BINARYPROTO", "HDF5"}) {
    for (const char* when : {"", "snapshot: 1", "snapshot: 1 snapshot_after_train: false"}) {
      for (const int workers : {1, 2}) {
        SolverGroup group(
            Parse(
                StrCat("base_lr: 1e30 max_iter: 1 display: 1 snapshot_format: ", format, " ", when),
                "", kDivergingNet),
            {}, workers);
        EXPECT_THAT(ErrorText<Error>([&] { group.Solve(); }),
                    AllOf(HasSubstr("the loss of iteration 1 is not a number: layer 'ip'"),
                          HasSubstr("blob 'y' is not finite")))
            << when;
        EXPECT_EQ(CountFiles(), 0) << when;
      }
    }
  }
}

// The pass that computes the last loss changes statistics and data beyond the state in the
// snapshot.
TEST_F(NonFiniteTest, TheLastLossLeavesNoTraceInTheSnapshot) {
  for (const char* display : {"display: 0", "display: 2"}) {
    Solver solver(Parse(StrCat("max_iter: 2 momentum: 0.9 ", display)));
    solver.Solve();
    const std::string kept = folder_.path(StrCat("kept", display));
    std::filesystem::rename(folder_.path("run_iter_2.caffemodel"), kept + ".caffemodel");
    std::filesystem::rename(folder_.path("run_iter_2.solverstate"), kept + ".solverstate");
  }
  for (const char* ending : {".caffemodel", ".solverstate"}) {
    EXPECT_TRUE(ReadFile(folder_.path(StrCat("keptdisplay: 0", ending))) ==
                ReadFile(folder_.path(StrCat("keptdisplay: 2", ending))))
        << ending;
  }
}

constexpr char kBrokenTest[] = R"(
  layer { name: "minus" type: "Power" bottom: "n" top: "m" power_param { scale: 0 shift: -1 }
    include { phase: TEST } }
  layer { name: "log" type: "Log" bottom: "m" top: "l" include { phase: TEST } }
  layer { name: "copy" type: "Power" bottom: "l" top: "result" include { phase: TEST } }
)";

TEST_F(NonFiniteTest, ATestWhoseOutputIsNotFiniteIsNamedAndTrainingGoesOn) {
  for (const bool keep_all : {true, false}) {
    Solver solver(Parse("max_iter: 2 test_iter: 3 test_interval: 1", kBrokenTest),
                  {.keep_all = keep_all});
    ::testing::internal::CaptureStderr();
    solver.Solve();
    const std::string log = ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(log, HasSubstr("test net #0 at iteration 0: in batch 0 output 'result' of layer "
                               "'copy' (Power) is "));
    EXPECT_THAT(log, HasSubstr("layer 'log' (Log) is the first whose blob 'l' is not finite"));
    EXPECT_THAT(log, HasSubstr("test net #0 at iteration 2: "));
    EXPECT_THAT(log, Not(HasSubstr("in batch 1 output")));
    EXPECT_THAT(log, HasSubstr("Optimization Done."));
  }
}

TEST_F(NonFiniteTest, ATestOfWeightsThatAreNotFiniteIsAnError) {
  Solver solver(Parse("max_iter: 2 test_iter: 1 test_interval: 1"));
  solver.net().layer_params("ip")[1]->mutable_cpu_data()[2] = kInfinity;
  EXPECT_THAT(ErrorText<Error>([&] { solver.TestAll(); }),
              AllOf(HasSubstr("test net #0 at iteration 0: in batch 0 output 'loss' of layer "),
                    HasSubstr("because parameter ip.1 is not finite at element 2: no update has "
                              "changed it")));
  EXPECT_THROW(solver.Solve(), Error);
}

}  // namespace
}  // namespace caffe
