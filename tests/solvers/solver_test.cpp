#include "caffe/solver.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/binary_format.hpp"
#include "caffe/io/hdf5_files.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/solver_factory.hpp"
#include "caffe/solvers/snapshot.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using testing::ErrorText;
using ::testing::HasSubstr;

// Least squares in one weight: loss = (w * x - t)^2 / 2 with x = 2, t = 3, so its gradient is
// 2 * (2 * w - 3).
constexpr char kLeastSquares[] = R"(
  name: "line"
  layer { name: "x" type: "DummyData" top: "x" top: "t"
    dummy_data_param {
      shape { dim: 1 dim: 1 } shape { dim: 1 dim: 1 }
      data_filler { type: "constant" value: 2 } data_filler { type: "constant" value: 3 } } }
  layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y" PARAM
    inner_product_param { num_output: 1 bias_term: false weight_filler { type: "constant" value: 0.5 } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
)";

// A net with noise: its result depends on every random draw.
constexpr char kNoisyNet[] = R"(
  name: "noisy"
  layer { name: "x" type: "DummyData" top: "x" top: "t"
    dummy_data_param {
      shape { dim: 4 dim: 8 } shape { dim: 4 dim: 2 }
      data_filler { type: "gaussian" std: 1 } data_filler { type: "gaussian" std: 1 } } }
  layer { name: "drop" type: "Dropout" bottom: "x" top: "x" }
  layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
    inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
)";

class SolverTest : public ::testing::Test {
 protected:
  SolverParameter Parse(const std::string& options, std::string net = kLeastSquares,
                        const std::string& param = "") {
    const size_t at = net.find("PARAM");
    if (at != std::string::npos) net.replace(at, 5, param.empty() ? "" : "param { " + param + " }");
    SolverParameter solver;
    ParseTextProto(options + " solver_mode: CPU random_seed: 7 net_param { " + net + " }", "test",
                   &solver);
    if (!solver.has_lr_policy()) solver.set_lr_policy("fixed");
    if (!solver.has_base_lr()) solver.set_base_lr(0.1f);
    if (!solver.has_snapshot_prefix()) solver.set_snapshot_prefix(folder_.path("run"));
    return solver;
  }

  static float Weight(Solver& solver) {
    return solver.net().layer_params("ip").at(0)->cpu_data()[0];
  }

  testing::TemporaryFolder folder_;
};

TEST_F(SolverTest, TakesTheStepsOfTheFormula) {
  struct Case {
    const char* options;
    const char* param;
    double rate, momentum, l1, l2;
  };
  const Case cases[] = {
      {"", "", 0.1, 0, 0, 0},
      {"momentum: 0.9", "", 0.1, 0.9, 0, 0},
      {"momentum: 0.9 weight_decay: 0.25", "", 0.1, 0.9, 0, 0.25},
      {"momentum: 0.5 weight_decay: 0.25 regularization_type: 'L1'", "", 0.1, 0.5, 0.25, 0},
      {"weight_decay: 0.25", "lr_mult: 2 decay_mult: 4", 0.2, 0, 0, 1},
      {"momentum: 0.9 weight_decay: 1", "lr_mult: 0", 0, 0.9, 0, 1},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(std::string(one.options) + " " + one.param);
    Solver solver(Parse(one.options, kLeastSquares, one.param));
    double w = 0.5, h = 0;
    for (int step = 0; step < 2; ++step) {
      const double gradient = 2 * (2 * w - 3) + one.l2 * w + one.l1 * (w > 0 ? 1 : -1);
      h = one.momentum * h + one.rate * gradient;
      w -= h;
      solver.Step(1);
      EXPECT_NEAR(Weight(solver), w, 1e-6);
    }
  }
}

// NVCaffe's WD: the decay bypasses the momentum.
TEST_F(SolverTest, DecaysWeightsApartFromTheGradient) {
  Solver solver(Parse("momentum: 0.9 weight_decay: 0.25 regularization_type: 'WD'", kLeastSquares,
                      "lr_mult: 0.5 decay_mult: 2"));
  double w = 0.5, h = 0;
  for (int step = 0; step < 3; ++step) {
    h = 0.9 * h + 0.05 * 2 * (2 * w - 3);
    w -= h + 0.05 * 0.5 * w;
    solver.Step(1);
    EXPECT_NEAR(Weight(solver), w, 1e-6);
  }
  EXPECT_THAT(ErrorText<InvalidArgument>(
                  [&] { Solver adam(Parse("type: 'Adam' regularization_type: 'WD'")); }),
              HasSubstr("regularization_type is WD, but the type is Adam"));
}

TEST_F(SolverTest, ClipsTheNormBeforeDividingByIterSize) {
  Solver once(Parse("clip_gradients: 1"));
  once.Step(1);  // gradient -4, clipped to -1
  EXPECT_NEAR(Weight(once), 0.6, 1e-6);
  Solver twice(Parse("clip_gradients: 1 iter_size: 2"));
  twice.Step(1);  // gradients add up to -8, clipped to -1, halved
  EXPECT_NEAR(Weight(twice), 0.55, 1e-6);
  Solver loose(Parse("clip_gradients: 5"));
  loose.Step(1);
  EXPECT_NEAR(Weight(loose), 0.9, 1e-6);
}

TEST_F(SolverTest, IterSizeAveragesEqualBatches) {
  for (const bool keep_all : {true, false}) {
    Solver one(Parse("momentum: 0.9"), {.keep_all = keep_all});
    Solver four(Parse("momentum: 0.9 iter_size: 4"), {.keep_all = keep_all});
    one.Step(3);
    four.Step(3);
    EXPECT_NEAR(Weight(one), Weight(four), 1e-6);
  }
}

// The rate falls when the mean of the last losses has not improved. The best mean, even that of
// iteration 0, and the losses themselves are part of the state.
TEST_F(SolverTest, ResumesPlateauExactly) {
  for (const char* format : {"BINARYPROTO", "HDF5"}) {
    for (const char* average_loss : {"1", "4"}) {
      for (int seed = 1; seed <= 8; ++seed) {
        SCOPED_TRACE(StrCat(format, ", average_loss ", average_loss, ", seed ", seed));
        SolverParameter param = Parse(StrCat("lr_policy: 'plateau' gamma: 0.5 plateau_winsize: 5 "
                                             "plateau_winsize: 5 plateau_winsize: 5 max_iter: 16 "
                                             "average_loss: ",
                                             average_loss, " snapshot_format: ", format),
                                      kNoisyNet);
        param.set_random_seed(seed);
        param.set_base_lr(0.001f);
        const auto end_of = [&](Solver& solver) {
          const Blob& weights = *solver.net().layer_params("ip").at(0);
          return std::vector<float>(weights.cpu_data(), weights.cpu_data() + weights.count());
        };
        Solver whole(param, {.keep_all = false});
        std::string state;
        whole.AddCallbacks({.on_start = [&] {
          if (whole.iter() == 4) state = whole.Snapshot();
        }});
        whole.Solve();
        Solver resumed(param, {.keep_all = false});
        resumed.Solve(state);
        EXPECT_EQ(resumed.LearningRate(), whole.LearningRate());
        EXPECT_EQ(resumed.smoothed_loss(), whole.smoothed_loss());
        EXPECT_EQ(end_of(resumed), end_of(whole));
      }
    }
  }
}

TEST_F(SolverTest, ResumesExactly) {
  for (const std::string& type : SolverTypeList()) {
    for (const std::string format : {"BINARYPROTO", "HDF5"}) {
      SCOPED_TRACE(type + " " + format);
      const bool knows_momentum = type != "AdaGrad" && type != "RMSProp" && type != "AdaSecant";
      const std::string options = StrCat(
          "type: '", type, "' iter_size: 2 max_iter: 6 weight_decay: 0.1 snapshot_format: ", format,
          knows_momentum ? " momentum: 0.9" : "");
      const auto run = [&](const std::string& resume_file) {
        SolverParameter param = Parse(options, kNoisyNet);
        if (!resume_file.empty()) param.set_random_seed(99);  // the recorded seed takes precedence
        Solver solver(param, {.keep_all = false});
        if (resume_file.empty()) {
          solver.Step(3);
          solver.Snapshot();
          solver.Step(3);
        } else {
          solver.Solve(resume_file);
        }
        EXPECT_EQ(solver.iter(), 6);
        const Blob& weights = *solver.net().layer_params("ip").at(0);
        return std::vector<float>(weights.cpu_data(), weights.cpu_data() + weights.count());
      };
      const std::string state =
          folder_.path("run_iter_3.solverstate") + (format == "HDF5" ? ".h5" : "");
      const std::vector<float> whole = run("");
      EXPECT_EQ(run(state), whole);
    }
  }
}

// Results of the papers' formulas, by hand, for the rules that no recorded trajectory covers.
TEST_F(SolverTest, TakesTheStepsOfAdamWSagLambAndLion) {
  const auto gradient = [](double w) { return 2 * (2 * w - 3); };
  const auto steps = [&](const std::string& options) {
    Solver solver(Parse(options + " momentum: 0.9 weight_decay: 0.25 delta: 0.001"));
    std::vector<double> weights;
    for (int step = 0; step < 3; ++step) {
      solver.Step(1);
      weights.push_back(Weight(solver));
    }
    return weights;
  };
  for (const std::string type : {"AdamW", "LAMB"}) {
    SCOPED_TRACE(type);
    double w = 0.5, m = 0, v = 0;
    for (const double found : steps("type: '" + type + "' momentum2: 0.99")) {
      static int t = 0;
      t = t % 3 + 1;
      m = 0.9 * m + 0.1 * gradient(w);
      v = 0.99 * v + 0.01 * gradient(w) * gradient(w);
      const double correction = std::sqrt(1 - std::pow(0.99, t)) / (1 - std::pow(0.9, t));
      const double direction = correction * m / (std::sqrt(v) + 0.001) + 0.25 * w;
      const double trust = type == "LAMB" ? std::abs(w / direction) : 1;
      w -= 0.1 * trust * direction;
      EXPECT_NEAR(found, w, 1e-6);
    }
  }
  double w = 0.5, h = 0;
  for (const double found : steps("type: 'SAG'")) {
    h = 0.9 * h + 0.1 * (gradient(w) + 0.25 * w);
    w -= 0.1 * h;
    EXPECT_NEAR(found, w, 1e-6);
  }
  for (const double momentum2 : {0.99, 0.5}) {
    w = 0.5, h = 0;
    for (const double found :
         steps(momentum2 == 0.99 ? "type: 'Lion'" : "type: 'Lion' momentum2: 0.5")) {
      const double direction = 0.9 * h + 0.1 * gradient(w);
      h = momentum2 * h + (1 - momentum2) * gradient(w);
      w -= 0.1 * ((direction > 0 ? 1 : -1) + 0.25 * w);
      EXPECT_NEAR(found, w, 1e-6);
    }
  }
}

TEST_F(SolverTest, AdaSecantFindsItsOwnRate) {
  Solver solver(Parse("type: 'AdaSecant' base_lr: 1 delta: 0.0001"));
  solver.Step(1);
  EXPECT_FLOAT_EQ(Weight(solver), 0.51f);  // sqrt(delta), against the gradient's sign
  solver.Step(1);
  // By hand: g = -3.96, a = 0.04, an outlier (so far all gradients were -4), so a memory of 2.2;
  // E[a^2] = 0.04^2 / 2.2, E[d^2] = E[d]^2 = 0.01^2, E[a d] = 0.04 * 0.01 / 2.2.
  const double square = 0.04 * 0.04 / 2.2, covariance = 0.04 * 0.01 / 2.2 - 0.04 / 2.2 * 0.01;
  const double step = 0.01 / std::sqrt(square) - covariance / square;
  const double mean = -4 + 0.04 / 2.2, corrected = (-3.96 + 1.8 * mean) / 2.8;
  EXPECT_NEAR(Weight(solver), 0.51 - step * corrected, 1e-5);
  Solver slow(Parse("type: 'AdaSecant' base_lr: 0.1 delta: 0.0001"));
  slow.Step(500);
  EXPECT_NEAR(Weight(slow), 1.5, 1e-3);
}

TEST_F(SolverTest, NamesWhereALossStopsBeingANumber) {
  // log(0 * x) is -inf; the loss is then NaN.
  std::string net = kLeastSquares;
  net.replace(net.find("bottom: \"y\" bottom: \"t\""), 23, "bottom: \"log\" bottom: \"log\"");
  net += " layer { name: 'log' type: 'Log' bottom: 'y' top: 'log' }";
  SolverParameter param = Parse("", net);
  auto* layers = param.mutable_net_param()->mutable_layer();
  layers->SwapElements(2, 3);
  layers->Mutable(2)->mutable_log_param()->set_scale(0);
  for (const bool keep_all : {true, false}) {
    Solver solver(param, {.keep_all = keep_all});
    EXPECT_THAT(ErrorText<Error>([&] { solver.Step(1); }),
                HasSubstr("the loss of iteration 0 is not a number: layer 'log' (Log) is the first "
                          "whose blob 'log' is not finite (element 0)"));
  }
  Solver diverging(Parse("base_lr: 1e30"), {.keep_all = false});
  EXPECT_THAT(ErrorText<Error>([&] { diverging.Step(10); }),
              HasSubstr("is not a number: parameter ip.0 is not finite at element 0: an update was "
                        "too large"));
}

TEST_F(SolverTest, TellsWhatBecameOfWeights) {
  Solver solver(Parse(""));
  NetParameter weights;
  solver.net().ToProto(&weights);
  for (LayerParameter& layer : *weights.mutable_layer()) {
    if (layer.name() == "ip") layer.set_name("other");
  }
  WriteBinaryProto(folder_.path("w.caffemodel"), weights);
  ::testing::internal::CaptureStderr();
  const std::string error =
      ErrorText<InvalidArgument>([&] { LoadWeights(folder_.path("w.caffemodel"), &solver.net()); });
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("  other  ignored  the net has no layer of this name\n"));
  EXPECT_THAT(log, HasSubstr("  ip     kept     the file has no layer of this name\n"));
  EXPECT_THAT(error, HasSubstr("none of the net's 1 layers with parameters ('ip', ...) takes its "
                               "weights from this file, which has 1 others ('other', ...)"));
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { LoadWeights(", ", &solver.net()); }),
              HasSubstr("names no file"));
  solver.net().ToProto(&weights);
  WriteBinaryProto(folder_.path("w.caffemodel"), weights);
  ::testing::internal::CaptureStderr();
  LoadWeights(folder_.path("w.caffemodel"), &solver.net());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("  ip  copied   1 blob, 1 value\n"),
                    HasSubstr("  1 of the net's 1 layers with parameters take their weights")));
}

TEST_F(SolverTest, AFailedSnapshotStopsOnlyTheLastOne) {
  std::filesystem::create_directory(folder_.path("out"));
  SolverParameter param = Parse("snapshot: 2 max_iter: 4");
  param.set_snapshot_prefix(folder_.path("out/run"));
  Solver solver(param);
  solver.Step(2);
  EXPECT_TRUE(std::filesystem::exists(folder_.path("out/run_iter_2.solverstate")));
  // A file at the place of the folder: nothing can be created below it, not even by root.
  std::filesystem::rename(folder_.path("out"), folder_.path("kept"));
  WriteFileAtomically(folder_.path("out"), std::string_view("no folder"));
  solver.Step(2);
  EXPECT_EQ(solver.iter(), 4);
  EXPECT_TRUE(std::filesystem::exists(folder_.path("kept/run_iter_2.solverstate")));
  EXPECT_THAT(ErrorText<IoError>([&] { solver.Snapshot(); }),
              HasSubstr("out/run_iter_4.caffemodel"));
  EXPECT_THAT(ErrorText<IoError>([&] { solver.Solve(); }), HasSubstr("snapshot_prefix"));
}

TEST_F(SolverTest, ChecksThePrefixBeforeTraining) {
  SolverParameter param = Parse("snapshot: 1");
  // A file at the place of a folder: nothing can be created below it, not even by root.
  WriteFileAtomically(folder_.path("file"), std::string_view("no folder"));
  param.set_snapshot_prefix(folder_.path("file/folder/run"));
  EXPECT_THAT(ErrorText<IoError>([&] { Solver solver(param); }), HasSubstr("file/folder/run"));
}

TEST_F(SolverTest, RefusesStatesThatAreNotItsOwn) {
  Solver solver(Parse("momentum: 0.9"));
  solver.Step(1);
  const std::string state_file = solver.Snapshot();
  const std::string model_file = folder_.path("run_iter_1.caffemodel");
  EXPECT_THAT(ErrorText<IoError>([&] { solver.Restore(model_file); }),
              HasSubstr("give it to --weights"));
  EXPECT_THAT(ErrorText<IoError>([&] { solver.Restore(folder_.path("none")); }), HasSubstr("none"));

  const auto restore = [&](const std::function<void(SolverState*)>& change) {
    SolverState state;
    ReadBinaryProto(state_file, &state);
    change(&state);
    state.clear_checksum(), state.clear_weights_bytes();  // as in states of other programs
    WriteBinaryProto(folder_.path("changed.solverstate"), state);
    return ErrorText<Error>([&] { solver.Restore(folder_.path("changed.solverstate")); });
  };
  EXPECT_NO_THROW(solver.Restore(state_file));
  EXPECT_THAT(restore([](SolverState* state) { state->add_history(); }),
              HasSubstr("has 2 history blobs"));
  EXPECT_THAT(restore([](SolverState* state) {
                state->mutable_history(0)->mutable_shape()->set_dim(0, 5);
              }),
              HasSubstr("5x1"));
  EXPECT_THAT(restore([](SolverState* state) { state->set_solver_type("Adam"); }),
              HasSubstr("'Adam'"));
  EXPECT_THAT(restore([](SolverState* state) { state->set_net_name("other"); }),
              HasSubstr("'other'"));
  EXPECT_THAT(restore([](SolverState* state) {
                state->add_larc_cosine(0);
                state->add_larc_cosine(0);
              }),
              HasSubstr("has 2 LARC cosines, the net 1 parameters"));
  EXPECT_THAT(restore([](SolverState* state) { state->set_learned_net("gone"); }),
              HasSubstr("gone"));
  WriteFileAtomically(folder_.path("torn.solverstate"), ReadFile(state_file).substr(0, 20));
  EXPECT_THAT(ErrorText<IoError>([&] { solver.Restore(folder_.path("torn.solverstate")); }),
              HasSubstr("torn"));
}

TEST_F(SolverTest, AStateWithoutCosinesLeavesNoneOfTheRunBefore) {
  const std::string options = "momentum: 0.9 larc: true larc_turbo: true";
  Solver fresh(Parse(options), {.keep_all = false}), trained(Parse(options), {.keep_all = false});
  fresh.Step(1);
  const std::string file = fresh.Snapshot();
  SolverState state;
  ReadBinaryProto(file, &state);
  ASSERT_EQ(state.larc_cosine_size(), 1);
  state.clear_larc_cosine();
  state.clear_checksum(), state.clear_weights_bytes();
  WriteBinaryProto(file, state);
  trained.Step(5);
  for (Solver* solver : {&fresh, &trained}) {
    solver->Restore(file);
    solver->Step(2);
  }
  EXPECT_EQ(Weight(trained), Weight(fresh));
}

TEST_F(SolverTest, FindsWeightsBesideTheState) {
  Solver solver(Parse(""));
  solver.Step(1);
  solver.Snapshot();
  const float weight = Weight(solver);
  std::filesystem::create_directory(folder_.path("moved"));
  for (const char* name : {"run_iter_1.caffemodel", "run_iter_1.solverstate"}) {
    std::filesystem::rename(folder_.path(name), folder_.path("moved") + "/" + name);
  }
  Solver other(Parse(""));
  other.Restore(folder_.path("moved/run_iter_1.solverstate"));
  EXPECT_EQ(Weight(other), weight);
}

TEST_F(SolverTest, StopsWhenAsked) {
  Solver solver(Parse("max_iter: 100"));
  solver.SetActionFunction(
      [&] { return solver.iter() == 3 ? SolverAction::STOP : SolverAction::NONE; });
  solver.Solve();
  EXPECT_EQ(solver.iter(), 3);
  EXPECT_TRUE(std::filesystem::exists(folder_.path("run_iter_3.solverstate")));
}

TEST_F(SolverTest, LogsInCaffesForm) {
  ::testing::internal::CaptureStderr();
  Solver solver(
      Parse("max_iter: 2 display: 1 test_iter: 2 test_interval: 1 test_compute_loss: true "
            "snapshot_after_train: false"));
  solver.Solve();
  const std::string log = ::testing::internal::GetCapturedStderr();
  for (const char* line : {"] Initializing solver from parameters: \n",
                           "\nmax_iter: 2\n",
                           "] Creating training net specified in net_param.\n",
                           "] Creating test net (#0) specified by net_param\n",
                           "] Initializing net from parameters: \nname: \"line\"\n",
                           "] Creating Layer ip\n",
                           "] ip <- x\n",
                           "] ip -> y\n",
                           "] Setting up ip\n",
                           "] Top shape: 1 1 (1)\n",
                           "] Memory required for data: ",
                           "] Memory planned, MiB: ",
                           "] ip needs backward computation.\n",
                           "] x does not need backward computation.\n",
                           "] This network produces output loss\n",
                           "] Network initialization done.\n",
                           "] Solving line\n",
                           "] Learning Rate Policy: fixed\n",
                           "] Iteration 0, Testing net (#0)\n",
                           "] Test loss: 2\n",
                           "]     Test net output #0: loss = 2 (* 1 = 2 loss)\n",
                           "] Iteration 0 (0 iter/s, ",
                           "s/1 iters), loss = 2\n",
                           "]     Train net output #0: loss = 2 (* 1 = 2 loss)\n",
                           "] Iteration 0, lr = 0.1\n",
                           "] Iteration 2, loss = ",
                           "] Iteration 2, Testing net (#0)\n",
                           "] Optimization Done.\n"}) {
    EXPECT_THAT(log, HasSubstr(line));
  }
}

TEST_F(SolverTest, LogsValuesWithDebugInfo) {
  ::testing::internal::CaptureStderr();
  Solver solver(Parse("display: 1 debug_info: true"), {.keep_all = false});
  solver.Step(1);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("    [Forward] Layer ip, top blob y data: 1\n"));
  EXPECT_THAT(log, HasSubstr("    [Backward] Layer ip, param blob 0 diff: 4\n"));
  EXPECT_THAT(log, HasSubstr("    [Update] Layer ip, param 0 data: 0.5; diff: 0.4\n"));
}

TEST_F(SolverTest, LogsWhatAnUpdateTookUnderTheParametersName) {
  ::testing::internal::CaptureStderr();
  Solver solver(Parse("type: 'Adam' momentum2: 0.999 display: 1 debug_info: true", kLeastSquares,
                      "name: 'w'"),
                {.keep_all = false});
  solver.Step(1);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("    [Forward] Layer ip, param blob w data: 0.5\n"));
  // Adam's first step equals the learning rate for any gradient.
  EXPECT_THAT(log, HasSubstr("    [Update] Layer ip, param w data: 0.5; diff: 0.1\n"));
}

TEST_F(SolverTest, NamesWhatIsDamagedInAnHdf5State) {
  const std::string file = folder_.path("damaged.solverstate.h5");
  const auto error = [&](const char* seed, std::vector<double> scale, int64_t iteration) {
    Hdf5Writer writer(file);
    writer.WriteInteger("iter", iteration);
    writer.WriteInteger("current_step", 0);
    writer.CreateGroup("history");
    writer.CreateGroup("cortado");
    writer.WriteDoubles("cortado/minimum_loss", Shape{1}, std::vector<double>{1});
    writer.WriteInteger("cortado/iter_last_event", 0);
    writer.WriteString("cortado/solver_type", "SGD");
    writer.WriteString("cortado/net_name", "line");
    writer.WriteString("cortado/random_seed", seed);
    writer.WriteDoubles("cortado/gradient_scale", Shape{static_cast<int64_t>(scale.size())}, scale);
    writer.Commit();
    return ErrorText<IoError>([&] { Solver(Parse("")).Restore(file); });
  };
  EXPECT_THAT(error("x", {1, 2, 3, 4}, 3), HasSubstr(file + ": 'cortado/random_seed' is 'x'"));
  EXPECT_THAT(error("99999999999999999999", {1, 2, 3, 4}, 3), HasSubstr("random_seed' is '9999"));
  EXPECT_THAT(error("7", {1, 2}, 3), HasSubstr("'cortado/gradient_scale' has 2 of 4 numbers"));
  EXPECT_THAT(error("7", {1, 2, 3, 4}, int64_t{1} << 40), HasSubstr("'iter' is 1099511627776"));
}

TEST_F(SolverTest, RefusesSnapshotsThatNoBinaryFileHolds) {
  EXPECT_NO_THROW(CheckSnapshotFits(uint64_t{1} << 30, uint64_t{1} << 30));
  EXPECT_THAT(ErrorText<InvalidArgument>([] { CheckSnapshotFits(uint64_t{1} << 31, 0); }),
              HasSubstr("weights of 2147483648 bytes cannot be snapshotted"));
  EXPECT_THAT(ErrorText<InvalidArgument>([] { CheckSnapshotFits(0, uint64_t{1} << 32); }),
              HasSubstr("set snapshot_format: HDF5"));
}

TEST_F(SolverTest, ExplainsWrongDefinitions) {
  const auto error = [&](const std::function<void(SolverParameter*)>& change) {
    SolverParameter param = Parse("");
    change(&param);
    return ErrorText<Error>([&] { Solver solver(param, {.keep_all = false}); });
  };
  EXPECT_THAT(error([](SolverParameter* param) { param->set_type("RMSprop"); }),
              HasSubstr("did you mean 'RMSProp'?"));
  EXPECT_THAT(error([](SolverParameter* param) { param->clear_net_param(); }),
              HasSubstr("set exactly one of net, train_net, net_param, train_net_param"));
  EXPECT_THAT(error([](SolverParameter* param) { param->set_net("x"); }),
              HasSubstr("several train nets"));
  EXPECT_THAT(error([](SolverParameter* param) { param->add_test_iter(1); }),
              HasSubstr("test_interval"));
  EXPECT_THAT(error([](SolverParameter* param) { param->set_iter_size(0); }),
              HasSubstr("iter_size is 0"));
  EXPECT_THAT(error([](SolverParameter* param) { param->set_max_iter(-5); }),
              HasSubstr("max_iter is -5"));
  EXPECT_THAT(error([](SolverParameter* param) { param->set_snapshot(-5); }),
              HasSubstr("snapshot is -5"));
  EXPECT_THAT(error([](SolverParameter* param) { param->mutable_net_param()->clear_layer(); }),
              HasSubstr("net 'line' has no layers"));
  const auto layer_error = [&](const std::function<void(LayerParameter*)>& change) {
    return error(
        [&](SolverParameter* param) { change(param->mutable_net_param()->mutable_layer(1)); });
  };
  EXPECT_THAT(layer_error([](LayerParameter* layer) { layer->clear_type(); }),
              HasSubstr("layer 'ip' (): the type is missing"));
  EXPECT_THAT(layer_error([](LayerParameter* layer) { layer->set_name("x"); }),
              HasSubstr("layer 'x' (InnerProduct): has weights and a name that another layer has"));
  EXPECT_THAT(error([](SolverParameter* param) {
                param->set_larc(true);
                param->set_type("Adam");
              }),
              HasSubstr("LARC belongs to SGD and SAG"));
  EXPECT_THAT(error([](SolverParameter* param) {
                param->set_larc(true);
                param->set_larc_policy("crop");
              }),
              HasSubstr("larc_policy is 'crop'; use scale or clip"));
  EXPECT_THAT(error([](SolverParameter* param) {
                param->mutable_net_param()->mutable_layer()->DeleteSubrange(1, 2);
              }),
              HasSubstr("no parameters in phase TRAIN"));
  EXPECT_THAT(error([](SolverParameter* param) {
                param->mutable_net_param()->mutable_layer()->RemoveLast();
              }),
              HasSubstr("has no loss in phase TRAIN"));
  EXPECT_THAT(ErrorText<Error>([&] { Solver(Parse("")).Solve(); }),
              HasSubstr("max_iter is not set"));
}

TEST_F(SolverTest, RefusesNumbersThatNoStepCanUse) {
  const auto error = [&](const std::string& options) {
    return ErrorText<InvalidArgument>([&] { Solver solver(Parse(options), {.keep_all = false}); });
  };
  for (const std::string field :
       {"base_lr", "momentum", "weight_decay", "clip_gradients", "power", "gamma"}) {
    EXPECT_THAT(error(field + ": nan"), HasSubstr("solver: " + field + " is nan"));
    EXPECT_THAT(error(field + ": inf"), HasSubstr("solver: " + field + " is inf"));
  }
  EXPECT_THAT(error("clip_gradients: 0"),
              HasSubstr("clip_gradients is 0; leave it out or give a positive norm"));
  EXPECT_NO_THROW(Solver(Parse("clip_gradients: -1")));
  for (const std::string type : {"Adam", "AdamW", "LAMB", "Lion"}) {
    const std::string solver = "type: '" + type + "' ";
    EXPECT_THAT(error(solver + "momentum2: 1"),
                HasSubstr("momentum2 is 1; " + type + " needs it in [0, 1)"));
    EXPECT_THAT(error(solver + "momentum2: -0.5"), HasSubstr("momentum2 is -0.5"));
    EXPECT_THAT(error(solver + "momentum2: nan"), HasSubstr("momentum2 is nan"));
    EXPECT_THAT(error(solver + "momentum: 1"),
                HasSubstr("momentum is 1; " + type + " needs it in [0, 1)"));
    EXPECT_THAT(error(solver + "momentum: -0.5"), HasSubstr("momentum is -0.5"));
    EXPECT_NO_THROW(Solver(Parse(solver + "momentum: 0 momentum2: 0 delta: 0")));
  }
  for (const std::string type : {"Adam", "AdamW", "LAMB", "RMSProp", "AdaGrad", "AdaDelta"}) {
    EXPECT_THAT(error("type: '" + type + "' delta: -1e-8"),
                HasSubstr("delta is -1e-08; it must be 0 or more"));
  }
}

}  // namespace
}  // namespace caffe
