// Layers that are split over ranks give the same numbers as without the split.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <sstream>
#include <thread>

#include "caffe/distributed/tcp_communicator.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/hdf5_files.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net/training_net.hpp"
#include "caffe/solver_group.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/loopback_ranks.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using testing::ErrorText;
using ::testing::HasSubstr;

// Outputs not divisible by the number of ranks, two readers of a blob, in-place layers, no bias,
// and layers that are not split before, between and after the others.
constexpr char kSplitNet[] = R"(
  name: "split"
  layer { name: "rows" type: "HDF5Data" top: "x" top: "t"
    hdf5_data_param { source: "LIST" batch_size: BATCH } }
  layer { name: "images" type: "Reshape" bottom: "x" top: "images"
    reshape_param { shape { dim: 0 dim: 1 dim: 2 dim: 3 } } }
  layer { name: "conv" type: "Convolution" bottom: "images" top: "c"
    convolution_param { num_output: 4 kernel_size: 2 weight_filler { type: "xavier" } } }
  layer { name: "relu" type: "ReLU" bottom: "c" top: "c" }
  layer { name: "ip1" type: "InnerProduct" bottom: "c" top: "h" SPLIT
    inner_product_param { num_output: 7 weight_filler { type: "xavier" } } }
  layer { name: "tanh" type: "TanH" bottom: "h" top: "h" }
  layer { name: "ip2" type: "InnerProduct" bottom: "h" top: "a" SPLIT
    inner_product_param { num_output: 5 bias_term: false weight_filler { type: "xavier" } } }
  layer { name: "ip3" type: "InnerProduct" bottom: "h" top: "b" SPLIT
    param { lr_mult: 2 } param { lr_mult: 0 }
    inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
  layer { name: "sum" type: "Eltwise" bottom: "a" bottom: "b" top: "s" }
  layer { name: "ip4" type: "InnerProduct" bottom: "s" top: "y"
    inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
)";

constexpr int kItems = 12;  // over all ranks

std::string Replaced(std::string text, const std::string& name, const std::string& value) {
  for (size_t at = text.find(name); at != std::string::npos;
       at = text.find(name, at + value.size()))
    text.replace(at, name.size(), value);
  return text;
}

class SplitLayers : public ::testing::Test {
 protected:
  SplitLayers() {
    constexpr int kRows = 30;
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    std::vector<float> x(kRows * 6), t(kRows * 2);
    for (float& value : x) value = normal(random);
    for (float& value : t) value = normal(random);
    Hdf5Writer file(folder_.path("rows.h5"));
    file.WriteFloats("x", Shape{kRows, 6}, x);
    file.WriteFloats("t", Shape{kRows, 2}, t);
    file.Commit();
    WriteFileAtomically(folder_.path("list.txt"), folder_.path("rows.h5") + "\n");
  }

  SolverParameter Parse(const std::string& options, int ranks, bool is_split = true,
                        const std::string& net = kSplitNet) {
    std::string text = Replaced(net, "SPLIT", is_split ? "parallel: SPLIT_OUTPUT" : "");
    text = Replaced(text, "LIST", folder_.path("list.txt"));
    text = Replaced(text, "BATCH", std::to_string(kItems / ranks));
    SolverParameter solver;
    ParseTextProto(options + " solver_mode: CPU random_seed: 7 net_param { " + text + " }", "test",
                   &solver);
    if (!solver.has_lr_policy()) solver.set_lr_policy("fixed");
    if (!solver.has_base_lr()) solver.set_base_lr(0.05f);
    if (!solver.has_snapshot_prefix()) solver.set_snapshot_prefix(folder_.path("run"));
    return solver;
  }

  static std::vector<double> Weights(Net& net) {
    std::vector<double> all;
    for (size_t layer = 0; layer < net.layers().size(); ++layer) {
      for (const auto& blob : net.layer_params(static_cast<int>(layer))) {
        const double* values = blob->cpu_data<double>();
        all.insert(all.end(), values, values + blob->count());
      }
    }
    return all;
  }

  static void ExpectEqual(const std::vector<double>& weights, const std::vector<double>& expected,
                          double bound) {
    ASSERT_EQ(weights.size(), expected.size());
    double largest = 0, difference = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      largest = std::max(largest, std::abs(expected[i]));
      difference = std::max(difference, std::abs(weights[i] - expected[i]));
    }
    EXPECT_LE(difference, bound * largest);
  }

  testing::TemporaryFolder folder_;
};

TEST_F(SplitLayers, TrainAsWithout) {
  const std::map<std::string, double> cases = {
      {"precision: FP64 momentum: 0.9 weight_decay: 0.01", 1e-12},
      {"momentum: 0.9 weight_decay: 0.01", 1e-5},
      {"precision: FP64 type: 'Adam' base_lr: 0.01 momentum: 0.9", 1e-12},
      {"precision: FP64 iter_size: 2 clip_gradients: 0.3 momentum: 0.9", 1e-12},
      {"precision: FP64 momentum: 0.9 larc: true larc_eta: 0.1 dialect: BVLC", 1e-12},
      {"precision: FP64 momentum: 0.9 larc: true larc_turbo: true larc_eta: 0.1 dialect: BVLC "
       "clip_gradients: 0.3",
       1e-12},
  };
  for (const auto& [options, bound] : cases) {
    SolverGroup joined(Parse(options, 1), {.keep_all = false}, 1);
    joined.Step(20);
    const std::vector<double> expected = Weights(joined.solver(0).net());
    for (const int workers : {2, 3, 4}) {
      SCOPED_TRACE(StrCat(options, ", ", workers, " workers"));
      SolverGroup with(Parse(options, workers), {.keep_all = false}, workers);
      ASSERT_EQ(TrainingNet(with.solver(0).net()).SplitParams().size(), 5u);
      with.Step(20);
      const std::vector<double> weights = Weights(with.solver(0).net());
      ExpectEqual(weights, expected, bound);
      for (int worker = 1; worker < workers; ++worker)
        EXPECT_EQ(Weights(with.solver(worker).net()), weights) << "worker " << worker;
      EXPECT_NEAR(with.solver(0).smoothed_loss(), joined.solver(0).smoothed_loss(),
                  1e-5 * std::abs(joined.solver(0).smoothed_loss()));
    }
  }
}

// Few steps, because roundings of 8 bits add up.
TEST_F(SplitLayers, ComputeIn16BitsNearly) {
  SolverGroup joined(Parse("precision: BF16", 1), {.keep_all = false}, 1);
  joined.Step(3);
  for (const int workers : {2, 3}) {
    SolverGroup with(Parse("precision: BF16", workers), {.keep_all = false}, workers);
    with.Step(3);
    ExpectEqual(Weights(with.solver(1).net()), Weights(joined.solver(0).net()), 0.005);
  }
}

TEST_F(SplitLayers, ComputeAsWithoutInAKeepAllNet) {
  const std::string options = "precision: FP64 momentum: 0.9 iter_size: 2";
  SolverGroup joined(Parse(options, 1), {}, 1), with(Parse(options, 2), {}, 2);
  joined.Step(5);
  with.Step(5);
  ExpectEqual(Weights(with.solver(1).net()), Weights(joined.solver(0).net()), 1e-12);
}

TEST_F(SplitLayers, ScaleGradientsAsWithout) {
  const auto train = [&](bool is_split) {
    SolverGroup group(
        Parse("momentum: 0.9", 3, is_split,
              std::string("global_grad_scale: 64 global_grad_scale_adaptive: true ") + kSplitNet),
        {.keep_all = false}, 3);
    group.Step(20);
    return Weights(group.solver(2).net());
  };
  ExpectEqual(train(true), train(false), 1e-5);
}

// Processes that communicate over TCP give the same bytes as threads.
TEST_F(SplitLayers, TrainTheSameBytesByTcp) {
  const SolverParameter param = Parse("momentum: 0.9 larc: true dialect: BVLC", 3);
  SolverGroup group(param, {.keep_all = false}, 3);
  group.Step(5);
  const int port = testing::FreePort();
  std::vector<std::vector<double>> weights(3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      Solver solver(param,
                    {.keep_all = false,
                     .communicator = MakeTcpCommunicator(testing::LoopbackRank(rank, 3, port))});
      solver.Step(5);
      weights[rank] = Weights(solver.net());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(weights, Each(Weights(group.solver(0).net())));
}

TEST_F(SplitLayers, ResumeOnOtherNumbersOfRanks) {
  const std::string options = "precision: FP64 type: 'Adam' base_lr: 0.01 momentum: 0.9";
  SolverGroup whole(Parse(options, 1), {.keep_all = false}, 1);
  whole.Step(15);
  std::string state;
  std::vector<double> weights;
  const auto go_on = [&](int workers, bool is_split) {
    SolverGroup group(Parse(options, workers, is_split), {.keep_all = false}, workers);
    if (!state.empty()) group.Restore(state);
    group.Step(5);
    state = group.Snapshot();
    weights = Weights(group.solver(workers - 1).net());
  };
  go_on(2, true);
  go_on(1, true);
  go_on(3, true);
  ExpectEqual(weights, Weights(whole.solver(0).net()), 1e-12);
  state.clear();
  go_on(3, true);
  go_on(2, false);
  go_on(4, true);
  ExpectEqual(weights, Weights(whole.solver(0).net()), 1e-12);
}

// A snapshot during training has the parts of all ranks, and training continues as without it.
TEST_F(SplitLayers, SnapshotsOnTheWayAreWhole) {
  const std::string options = "precision: FP64 momentum: 0.9 max_iter: 10 ";
  SolverGroup without(Parse(options + "snapshot_after_train: false", 2), {.keep_all = false}, 2);
  without.Solve();
  SolverGroup with(Parse(options + "snapshot: 4", 2), {.keep_all = false}, 2);
  with.Solve();
  EXPECT_EQ(Weights(with.solver(1).net()), Weights(without.solver(1).net()));
  SolverGroup resumed(Parse(options, 2), {.keep_all = false}, 2);
  resumed.Solve(folder_.path("run_iter_4.solverstate"));
  EXPECT_EQ(Weights(resumed.solver(1).net()), Weights(without.solver(1).net()));
}

TEST_F(SplitLayers, TestWithTheWeightsOfAllRanks) {
  const auto results = [&](int workers, bool is_split) {
    ::testing::internal::CaptureStderr();
    SolverGroup group(Parse("precision: FP64 test_iter: 3 test_interval: 2 max_iter: 4 "
                            "snapshot_after_train: false",
                            workers, is_split),
                      {.keep_all = false}, workers);
    group.Solve();
    std::istringstream log(::testing::internal::GetCapturedStderr());
    std::vector<std::string> lines;
    for (std::string line; std::getline(log, line);) {
      const size_t at = line.find("Test net output");
      if (at != std::string::npos) lines.push_back(line.substr(at));
    }
    return lines;
  };
  const std::vector<std::string> expected = results(2, false);
  EXPECT_EQ(expected.size(), 3u);
  EXPECT_EQ(results(2, true), expected);
}

TEST_F(SplitLayers, ComputeOnlyWhileAllRanksTrain) {
  SolverGroup group(Parse("", 2), {.keep_all = false}, 2);
  group.Step(1);
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { group.solver(0).net().Forward(); }),
              AllOf(HasSubstr("layer 'ip1' (InnerProduct): is split over 2 ranks"),
                    HasSubstr("phase TEST")));
}

// The rank that finds the origin ends the waiting of the others.
TEST_F(SplitLayers, TellOfALossThatIsNotANumber) {
  SolverGroup group(Parse("base_lr: 1e30", 3), {.keep_all = false}, 3);
  EXPECT_THAT(ErrorText<Error>([&] { group.Step(20); }), HasSubstr("is not a number"));
}

TEST_F(SplitLayers, NeedARestoreAfterAFailure) {
  SolverGroup group(Parse("momentum: 0.9", 2), {.keep_all = false}, 2);
  group.Step(2);
  group.Snapshot();
  group.solver(1).AddCallbacks({.on_gradients_ready = [&] {
    if (group.solver(1).iter() == 4) throw IoError("rank 1 is gone");
  }});
  EXPECT_THROW(group.Step(4), IoError);
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { group.Snapshot(); }),
              HasSubstr("restore a snapshot"));
}

TEST_F(SplitLayers, RefuseWhatTheyCannot) {
  const auto refusal = [&](const SolverParameter& param, int workers,
                           const SolverOptions& options) -> std::string {
    try {
      const SolverGroup group(param, options, workers);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const SolverOptions options{.keep_all = false};
  EXPECT_THAT(refusal(Parse("type: 'LAMB' momentum: 0.9", 2), 2, options),
              HasSubstr("LAMB needs whole parameters"));
  EXPECT_EQ(refusal(Parse("type: 'LAMB' momentum: 0.9", 1), 1, options), "");
  EXPECT_THAT(refusal(Parse("debug_info: true", 2), 2, options), HasSubstr("debug_info"));
  EXPECT_THAT(refusal(Parse("", 6), 6, options),
              HasSubstr("layer 'ip2' (InnerProduct): parallel is SPLIT_OUTPUT, but num_output is 5 "
                        "for 6 ranks"));
  const auto refused = [&](const std::string& from, const std::string& to) {
    return refusal(Parse("", 1, true, Replaced(kSplitNet, from, to)), 1, options);
  };
  EXPECT_THAT(refused("num_output: 7", "transpose: true num_output: 7 "),
              HasSubstr("transpose is true"));
  EXPECT_THAT(refused("layer { name: \"relu\"", "layer { SPLIT name: \"relu_\""),
              HasSubstr("which is for InnerProduct layers"));
  const std::string shared = Replaced(kSplitNet, "{ lr_mult: 2 }", "{ name: 'shared' }");
  EXPECT_THAT(refusal(Parse("", 1, true,
                            Replaced(shared, "top: \"a\"", "top: \"a\" param { name: 'shared' }")),
                      1, options),
              HasSubstr("shares a parameter"));
}

}  // namespace
}  // namespace caffe
