// A solver's state in memory: what training goes on from when ranks have vanished.
#include <gtest/gtest.h>

#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/solver.hpp"
#include "caffe/solver_factory.hpp"

namespace caffe {
namespace {

constexpr char kMemoryNet[] = R"(
  name: "noisy"
  layer { name: "x" type: "DummyData" top: "x" top: "t"
    dummy_data_param {
      shape { dim: 4 dim: 8 } shape { dim: 4 dim: 2 }
      data_filler { type: "gaussian" std: 1 } data_filler { type: "gaussian" std: 1 } } }
  layer { name: "drop" type: "Dropout" bottom: "x" top: "x" }
  layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
    inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
  layer { name: "norm" type: "BatchNorm" bottom: "y" top: "y" }
  layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
)";

SolverParameter ParseMemorySolver(const std::string& options) {
  SolverParameter solver;
  ParseTextProto(StrCat(options,
                        " solver_mode: CPU random_seed: 7 base_lr: 0.1 lr_policy: 'fixed' "
                        "snapshot_after_train: false "
                        "iter_size: 2 max_iter: 6 net_param { ",
                        kMemoryNet, " }"),
                 "test", &solver);
  return solver;
}

TEST(SolverMemory, ASolverGoesOnFromAnothersMemory) {
  for (const std::string& type : SolverTypeList()) {
    SCOPED_TRACE(type);
    SolverParameter param = ParseMemorySolver(StrCat("type: '", type, "' average_loss: 3"));
    Solver whole(param, {.keep_all = false});
    whole.Step(3);
    const SolverMemory memory = whole.Memory();
    param.set_random_seed(99);  // that of the memory wins
    Solver other(param, {.keep_all = false});
    other.Restore(memory);
    EXPECT_EQ(other.iter(), 3);
    other.Solve();
    whole.Step(3);
    EXPECT_EQ(other.Memory().weights, whole.Memory().weights);
    EXPECT_EQ(other.Memory().state, whole.Memory().state);
  }
}

// An iteration has two passes, each of which changes the running statistics.
TEST(SolverMemory, GoesBackToTheLastWholeIteration) {
  for (const char* precision : {"", "precision: FP16"}) {
    const SolverParameter param = ParseMemorySolver(precision);
    Solver whole(param, {.keep_all = false});
    whole.Step(3);
    Solver broken(param, {.keep_all = false, .goes_back = true});
    int passes = 0;
    broken.AddCallbacks({.on_backward = [&](float) {
      if (++passes == 8) throw DeviceError("a rank has vanished");
    }});
    EXPECT_THROW(broken.Solve(), DeviceError);
    EXPECT_EQ(broken.iter(), 3);
    EXPECT_EQ(broken.Memory().weights, whole.Memory().weights);
    EXPECT_EQ(broken.Memory().state, whole.Memory().state);
  }
}

TEST(SolverMemory, WhatIsNoneIsRefused) {
  Solver solver(ParseMemorySolver(""), {.keep_all = false});
  SolverMemory memory = solver.Memory();
  memory.weights += "x";
  EXPECT_THROW(solver.Restore(memory), InvalidArgument);
  EXPECT_THROW(solver.Restore(SolverMemory{"x", "y"}), InvalidArgument);
  EXPECT_THROW(solver.Restore(SolverMemory{}), Error);
}

}  // namespace
}  // namespace caffe
