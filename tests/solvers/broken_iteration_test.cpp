// An iteration that an error interrupts, after which a run may have to write a snapshot.
#include <gtest/gtest.h>

#include <string>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/solver.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

constexpr char kNetWithStatistics[] = R"(
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

// An iteration has two passes, and each pass changes the running statistics.
TEST(BrokenIteration, LeavesTheLastWholeOne) {
  const testing::TemporaryFolder folder;
  for (const char* precision : {"", "precision: FP16"}) {
    SolverParameter param;
    ParseTextProto(StrCat(precision,
                          " solver_mode: CPU random_seed: 7 base_lr: 0.1 lr_policy: 'fixed' "
                          "snapshot_after_train: false watchdog: 'abort' iter_size: 2 max_iter: 6 "
                          "net_param { ",
                          kNetWithStatistics, " }"),
                   "test", &param);
    param.set_snapshot_prefix(folder.path("run"));
    Solver whole(param, {.keep_all = false});
    whole.Step(3);
    whole.Snapshot();
    const std::string weights = ReadFile(folder.path("run_iter_3.caffemodel"));
    const std::string state = ReadFile(folder.path("run_iter_3.solverstate"));

    Solver broken(param, {.keep_all = false});
    int passes = 0;
    broken.AddCallbacks({.on_backward = [&](float) {
      if (++passes == 8) throw DeviceError("a rank has vanished");
    }});
    EXPECT_THROW(broken.Solve(), DeviceError);
    EXPECT_EQ(broken.iter(), 3);
    broken.Snapshot();
    EXPECT_TRUE(ReadFile(folder.path("run_iter_3.caffemodel")) == weights) << precision;
    EXPECT_TRUE(ReadFile(folder.path("run_iter_3.solverstate")) == state) << precision;
  }
}

}  // namespace
}  // namespace caffe
