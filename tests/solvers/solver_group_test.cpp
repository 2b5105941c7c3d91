#include "caffe/solver_group.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "caffe/distributed/communicator.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/hdf5_files.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/solvers/batch_division.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using testing::ErrorText;
using ::testing::HasSubstr;

// Data that a test chooses for each rank and pass; the function may also throw.
std::function<float(int rank, uint64_t pass)> choose_number;
// Called while a worker builds its net; may be empty.
std::function<void()> on_build;

class ChosenNumberLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerTraits traits() const override {
    return {.num_bottoms = 0, .num_tops = 1, .is_data = true, .has_backward = false};
  }
  void Prepare(const DataPlace& place) override {
    place_ = place;
    if (on_build) on_build();
  }
  std::vector<Shape> InferTopShapes(const std::vector<Shape>&) const override {
    return {Shape{2, 3}};
  }
  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::HostCall{.what = "chosen number",
                             .call =
                                 [place = place_](const KernelContext& ctx) {
                                   const uint64_t pass = ctx.random.pass / place.ranks;
                                   const float number = choose_number(place.rank, pass);
                                   std::fill_n(ctx.output(0).as<float>(), 6, number);
                                 }},
               {}, {graph.top(0)});
  }

 private:
  DataPlace place_;
};
REGISTER_LAYER_CLASS(ChosenNumber);

constexpr char kChosen[] = R"(
  name: "chosen"
  layer { name: "x" type: "ChosenNumber" top: "x" }
  layer { name: "t" type: "DummyData" top: "t"
    dummy_data_param { shape { dim: 2 dim: 1 } data_filler { type: "constant" value: 1 } } }
  layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
    inner_product_param { num_output: 1 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
)";

// A net that depends on every random draw, and has running statistics.
constexpr char kNoisy[] = R"(
  name: "noisy"
  layer { name: "rows" type: "HDF5Data" top: "x" top: "t"
    hdf5_data_param { source: "LIST" batch_size: 4 shuffle: true } }
  layer { name: "noise" type: "DummyData" top: "noise"
    dummy_data_param { shape { dim: 4 dim: 6 } data_filler { type: "gaussian" std: 0.1 } } }
  layer { name: "sum" type: "Eltwise" bottom: "x" bottom: "noise" top: "sum" }
  layer { name: "ip1" type: "InnerProduct" bottom: "sum" top: "h"
    inner_product_param { num_output: 8 weight_filler { type: "xavier" } } }
  layer { name: "norm" type: "BatchNorm" bottom: "h" top: "n" }
  layer { name: "drop" type: "Dropout" bottom: "n" top: "n" }
  layer { name: "ip2" type: "InnerProduct" bottom: "n" top: "y"
    inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
)";

constexpr char kRegression[] = R"(
  name: "regression"
  layer { name: "rows" type: "HDF5Data" top: "x" top: "t"
    hdf5_data_param { source: "LIST" batch_size: BATCH } }
  layer { name: "ip1" type: "InnerProduct" bottom: "x" top: "h"
    inner_product_param { num_output: 8 weight_filler { type: "xavier" } } }
  layer { name: "tanh" type: "TanH" bottom: "h" top: "h" }
  layer { name: "ip2" type: "InnerProduct" bottom: "h" top: "y"
    inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
)";

// Images of 2 x 3 and rows, both normalised with the statistics of all workers' items.
constexpr char kSynchronised[] = R"(
  name: "synchronised"
  layer { name: "rows" type: "HDF5Data" top: "x" top: "t"
    hdf5_data_param { source: "LIST" batch_size: BATCH } }
  layer { name: "images" type: "Reshape" bottom: "x" top: "images"
    reshape_param { shape { dim: 0 dim: 1 dim: 2 dim: 3 } } }
  layer { name: "conv" type: "Convolution" bottom: "images" top: "c"
    convolution_param { num_output: 4 kernel_size: 2 weight_filler { type: "xavier" } } }
  layer { name: "norm" type: "SyncBN" bottom: "c" top: "c" bn_param { slope_filler { type:
    "uniform" min: 0.5 max: 1.5 } } }
  layer { name: "relu" type: "ReLU" bottom: "c" top: "c" }
  layer { name: "ip1" type: "InnerProduct" bottom: "c" top: "h"
    inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
  layer { name: "norm1" type: "SyncBN" bottom: "h" top: "n" bn_param { OPTIONS } }
  layer { name: "tanh" type: "TanH" bottom: "n" top: "n" }
  layer { name: "ip2" type: "InnerProduct" bottom: "n" top: "y"
    inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
)";

class SolverGroupTest : public ::testing::Test {
 protected:
  SolverParameter Parse(const std::string& options, std::string net, int batch = 4) {
    WriteRows();
    const auto replace = [&](const std::string& name, const std::string& value) {
      const size_t at = net.find(name);
      if (at != std::string::npos) net.replace(at, name.size(), value);
    };
    replace("LIST", folder_.path("list.txt"));
    replace("BATCH", std::to_string(batch));
    SolverParameter solver;
    ParseTextProto(options + " solver_mode: CPU random_seed: 7 net_param { " + net + " }", "test",
                   &solver);
    if (!solver.has_lr_policy()) solver.set_lr_policy("fixed");
    if (!solver.has_base_lr()) solver.set_base_lr(0.05f);
    if (!solver.has_snapshot_prefix()) solver.set_snapshot_prefix(folder_.path("run"));
    return solver;
  }

  // 30 rows, x with 6 numbers and t with 2: no batch size used here divides 30.
  void WriteRows() {
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

  // All parameters of a worker's net, including statistics.
  static std::vector<double> Weights(SolverGroup& group, int worker = 0) {
    std::vector<double> all;
    Net& net = group.solver(worker).net();
    for (size_t layer = 0; layer < net.layers().size(); ++layer) {
      for (const auto& blob : net.layer_params(static_cast<int>(layer))) {
        const double* values = blob->cpu_data<double>();
        all.insert(all.end(), values, values + blob->count());
      }
    }
    return all;
  }

  static void ExpectAllWorkersAgree(SolverGroup& group) {
    const std::vector<double> first = Weights(group);
    for (int worker = 1; worker < group.workers(); ++worker) {
      EXPECT_EQ(Weights(group, worker), first) << "worker " << worker;
    }
  }

  testing::TemporaryFolder folder_;
};

TEST_F(SolverGroupTest, EqualsOneWorkerWithTheJoinedBatch) {
  struct Case {
    const char* options;
    double bound;
  };
  const Case cases[] = {
      {"precision: FP64 momentum: 0.9 weight_decay: 0.01", 1e-12},
      {"momentum: 0.9 weight_decay: 0.01", 1e-5},
      {"precision: FP64 iter_size: 2 clip_gradients: 0.3 momentum: 0.9", 1e-12},
      {"precision: FP64 type: 'Adam' base_lr: 0.01 momentum: 0.9", 1e-12},
      {"precision: FP64 lr_policy: 'plateau' gamma: 0.5 plateau_winsize: 3 plateau_winsize: 4 "
       "average_loss: 2",
       1e-12},
      {"precision: FP64 momentum: 0.9 larc: true larc_eta: 0.1 dialect: BVLC", 1e-12},
  };
  for (const Case& one : cases) {
    SolverGroup joined(Parse(one.options, kRegression, 12), {.keep_all = false}, 1);
    joined.Step(50);
    const std::vector<double> expected = Weights(joined);
    double largest = 0;
    for (const double weight : expected) largest = std::max(largest, std::abs(weight));
    for (const int workers : {2, 3, 4}) {
      SCOPED_TRACE(StrCat(one.options, ", ", workers, " workers"));
      SolverGroup group(Parse(one.options, kRegression, 12 / workers), {.keep_all = false},
                        workers);
      group.Step(50);
      ExpectAllWorkersAgree(group);
      const std::vector<double> weights = Weights(group);
      ASSERT_EQ(weights.size(), expected.size());
      double difference = 0;
      for (size_t i = 0; i < weights.size(); ++i) {
        difference = std::max(difference, std::abs(weights[i] - expected[i]));
      }
      EXPECT_LE(difference, one.bound * largest);
      EXPECT_NEAR(group.solver(0).smoothed_loss(), joined.solver(0).smoothed_loss(),
                  1e-5 * std::abs(joined.solver(0).smoothed_loss()));
    }
  }
}

TEST_F(SolverGroupTest, SyncBNNormalisesWithTheItemsOfAllWorkers) {
  const auto net = [](const std::string& options) {
    std::string text = kSynchronised;
    return text.replace(text.find("OPTIONS"), 7, options);
  };
  // PSPNet's layer with running statistics, and SegNet's, which has two blobs.
  for (const std::string options : {"momentum: 0.9", "bn_mode: LEARN eps: 0.01"}) {
    for (const auto& [precision, bound] :
         std::map<std::string, double>{{"FP64", 1e-10}, {"FP32", 1e-4}}) {
      const std::string solver = "momentum: 0.9 base_lr: 0.01 iter_size: 2 precision: " + precision;
      SolverGroup joined(Parse(solver, net(options), 12), {.keep_all = false}, 1);
      joined.Step(20);
      const std::vector<double> expected = Weights(joined);
      for (const int workers : {2, 3}) {
        SCOPED_TRACE(StrCat(solver, " ", options, ", ", workers, " workers"));
        SolverGroup group(Parse(solver, net(options), 12 / workers), {.keep_all = false}, workers);
        group.Step(20);
        ExpectAllWorkersAgree(group);
        const std::vector<double> weights = Weights(group);
        ASSERT_EQ(weights.size(), expected.size());
        for (size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(weights[i], expected[i], bound);
      }
    }
  }
}

TEST_F(SolverGroupTest, SyncBNEndsWithAWorkerThatFails) {
  std::string net = kChosen;
  net.replace(net.find("layer { name: \"ip\""), 0,
              "layer { name: 'norm' type: 'SyncBN' bottom: 'x' top: 'x' } ");
  choose_number = [](int rank, uint64_t pass) -> float {
    if (rank == 1 && pass == 2) throw InvalidArgument("rank 1 has no more");
    return static_cast<float>(rank + 1);
  };
  SolverGroup group(Parse("", net), {.keep_all = false}, 3);
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { group.Step(5); }), HasSubstr("rank 1 has no more"));
}

// The other workers do not take part in these passes.
TEST_F(SolverGroupTest, SyncBNDoesNotWaitInPassesOfOneWorker) {
  const std::string net = R"(
    layer { name: "noise" type: "DummyData" top: "noise"
      dummy_data_param { shape { dim: 2 dim: 3 } data_filler { type: "gaussian" } } }
    layer { name: "norm" type: "SyncBN" bottom: "noise" top: "n" }
    layer { name: "x" type: "ChosenNumber" top: "x" }
    layer { name: "loss" type: "EuclideanLoss" bottom: "n" bottom: "x" top: "loss" }
  )";
  choose_number = [](int rank, uint64_t pass) {
    return rank == 1 && pass == 2 ? std::numeric_limits<float>::quiet_NaN() : 1.0f;
  };
  SolverGroup group(Parse("", net), {.keep_all = false}, 2);
  group.Step(1);
  group.solver(0).net().Forward();
  EXPECT_THAT(ErrorText<Error>([&] { group.Step(5); }), HasSubstr("is not a number"));
}

// NVCaffe's BatchNorm begins with the first batch's statistics, separately on each worker. They
// once began at 1/N of these, because only worker 0 recognised its first pass.
TEST_F(SolverGroupTest, RunningStatisticsBeginWithTheFirstBatch) {
  constexpr char kNet[] = R"(
    layer { name: "x" type: "DummyData" top: "x" top: "t"
      dummy_data_param { shape { dim: 64 dim: 3 } shape { dim: 64 dim: 1 }
        data_filler { type: "gaussian" mean: 2 std: 3 } data_filler { type: "constant" } } }
    layer { name: "bn" type: "BatchNorm" bottom: "x" top: "n"
      batch_norm_param { scale_bias: true } }
    layer { name: "ip" type: "InnerProduct" bottom: "n" top: "y"
      inner_product_param { num_output: 1 weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
  )";
  for (const int iter_size : {1, 2}) {
    for (const int workers : {1, 2, 4}) {
      SCOPED_TRACE(StrCat(workers, " workers, iter_size ", iter_size));
      SolverGroup group(Parse(StrCat("dialect: NVCAFFE iter_size: ", iter_size), kNet),
                        {.keep_all = false}, workers);
      group.Step(1);
      const auto& blobs = group.solver(0).net().layer_params("bn");
      for (int channel = 0; channel < 3; ++channel) {
        EXPECT_NEAR(blobs.at(0)->cpu_data()[channel], 2, 0.8);
        EXPECT_NEAR(blobs.at(1)->cpu_data()[channel], 9, 3.5);
      }
    }
  }
}

TEST_F(SolverGroupTest, RepeatsAndResumesExactly) {
  const SolverParameter param = Parse("momentum: 0.9 iter_size: 2", kNoisy);
  for (const int workers : {1, 2, 3}) {
    SCOPED_TRACE(StrCat(workers, " workers"));
    SolverGroup whole(param, {.keep_all = false}, workers);
    whole.Step(5);
    const std::string state = whole.Snapshot();
    whole.Step(5);
    ExpectAllWorkersAgree(whole);
    SolverGroup again(param, {.keep_all = false}, workers);
    again.Step(10);
    EXPECT_EQ(Weights(again), Weights(whole));
    SolverParameter other = param;
    other.set_random_seed(99);  // the recorded seed takes precedence
    SolverGroup resumed(other, {.keep_all = false}, workers);
    resumed.Restore(state);
    resumed.Step(5);
    ExpectAllWorkersAgree(resumed);
    EXPECT_EQ(Weights(resumed), Weights(whole));
    EXPECT_EQ(resumed.solver(workers - 1).iter(), 10);
  }
}

TEST_F(SolverGroupTest, WorkersSeeOtherRecordsAndDrawOtherNumbers) {
  const SolverParameter param = Parse("", kNoisy);
  SolverGroup group(param, {}, 2);
  group.Step(1);
  const auto values = [&](int worker, const std::string& name) {
    const Blob& blob = *group.solver(worker).net().blob_by_name(name);
    return std::vector<float>(blob.cpu_data(), blob.cpu_data() + blob.count());
  };
  for (const char* name : {"x", "noise"}) EXPECT_NE(values(0, name), values(1, name)) << name;
}

TEST_F(SolverGroupTest, TestsAsOneWorkerDoes) {
  const auto results = [&](int workers) {
    ::testing::internal::CaptureStderr();
    SolverGroup group(Parse("base_lr: 0 test_iter: 5 test_interval: 1 test_compute_loss: true "
                            "max_iter: 2 snapshot_after_train: false",
                            kNoisy),
                      {.keep_all = false}, workers);
    group.Solve();
    std::istringstream log(::testing::internal::GetCapturedStderr());
    std::vector<std::string> lines;
    for (std::string line; std::getline(log, line);) {
      const size_t at = line.find("] ");
      const std::string text = at == std::string::npos ? line : line.substr(at);
      if (text.find("Test") != std::string::npos) lines.push_back(text);
    }
    return lines;
  };
  const std::vector<std::string> expected = results(1);
  ASSERT_EQ(expected.size(), 9u);  // three tests, with a title, a loss and an output each
  EXPECT_NE(expected[1], expected[4]) << "each test goes on in the data";
  // Later statistics come from other batches, so only the first test can be equal.
  for (const int workers : {2, 3, 4}) {
    const std::vector<std::string> lines = results(workers);
    ASSERT_EQ(lines.size(), 9u);
    EXPECT_THAT(std::vector<std::string>(lines.begin(), lines.begin() + 3),
                ::testing::ElementsAreArray(expected.begin(), expected.begin() + 3));
  }
}

TEST_F(SolverGroupTest, GoesOnInTheTestDataAsOneWorkerDoes) {
  const auto results = [&](int workers) {
    ::testing::internal::CaptureStderr();
    SolverGroup group(Parse("base_lr: 0 test_iter: 5 test_interval: 1 max_iter: 3 "
                            "snapshot_after_train: false",
                            kRegression),
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
  const std::vector<std::string> expected = results(1);
  ASSERT_EQ(expected.size(), 4u);
  EXPECT_NE(expected[0], expected[1]);
  for (const int workers : {2, 3, 4}) EXPECT_EQ(results(workers), expected) << workers;
}

TEST_F(SolverGroupTest, AnErrorOfOneWorkerEndsAll) {
  choose_number = [](int rank, uint64_t pass) -> float {
    if (rank == 2 && pass == 4) throw IoError("the disk of worker 2 is gone");
    return 1;
  };
  SolverGroup group(Parse("", kChosen), {.keep_all = false}, 3);
  group.Step(4);
  try {
    group.Step(100);
    FAIL() << "nothing was thrown";
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the disk of worker 2 is gone"));
  }
}

// Rank 0 of two; the other rank always has the same numbers. Counts the reductions.
class EchoCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int ranks() const override { return 2; }
  int ranks_in_process() const override { return 2; }
  void AllReduceMean(const TensorView&, DType, Event&) override { ++reductions; }
  void AllReduceSumInPass(std::span<double> numbers) override {
    ++messages_in_pass;
    AllReduceSum(numbers);
  }
  void ExchangeInPass(std::span<const std::span<const char>> sent,
                      std::span<const std::span<char>> received) override {
    ++messages_in_pass;
    for (size_t i = 0; i < sent.size(); ++i) std::ranges::copy(sent[i], received[i].begin());
  }
  void AllReduceSum(std::span<double> numbers) override {
    for (double& number : numbers) number *= 2;
  }
  std::vector<std::string> AllGather(const std::string& text) override { return {text, text}; }
  void Abort(std::exception_ptr) override {}
  void ThrowIfAborted() override {}

  std::atomic<int> reductions = 0, messages_in_pass = 0;
};

TEST_F(SolverGroupTest, SyncBNSendsOneMessageInEachDirection) {
  std::string net = kSynchronised;
  net.replace(net.find("OPTIONS"), 7, "");
  const auto communicator = std::make_shared<EchoCommunicator>();
  Solver solver(Parse("", net), {.communicator = communicator});
  solver.Step(3);
  const int layers = 2, directions = 2;
  EXPECT_EQ(communicator->messages_in_pass, 3 * layers * directions);
}

TEST_F(SolverGroupTest, APassThatFailsLeavesNoReductionBehind) {
  bool fails = false;
  choose_number = [&](int, uint64_t) -> float {
    if (fails) throw IoError("the disk is busy");
    return 1;
  };
  const auto communicator = std::make_shared<EchoCommunicator>();
  Solver solver(Parse("", kChosen), {.communicator = communicator});
  const std::shared_ptr<Net> net = solver.shared_net();
  solver.Step(1);
  for (int i = 0; i < 2; ++i) {
    fails = true;
    EXPECT_THROW(solver.Step(1), IoError);
    fails = false;
    const int reductions = communicator->reductions;
    net->ForwardBackward();
    EXPECT_EQ(communicator->reductions, reductions) << "the net is not the solver's now";
    solver.Step(1);
    EXPECT_EQ(solver.iter(), i + 2);
    EXPECT_GT(communicator->reductions, reductions);
  }
}

TEST_F(SolverGroupTest, AWorkerWithoutAThreadEndsAll) {
  pthread_attr_t usual, impossible;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(pthread_attr_init(&impossible), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&impossible, size_t{1} << 47), 0);  // all of user space
  on_build = [&] { pthread_setattr_default_np(&impossible); };
  EXPECT_THAT(ErrorText<DeviceError>([&] { SolverGroup(Parse("", kChosen), {}, 1000); }),
              AllOf(HasSubstr("cannot start a thread"), HasSubstr("fewer workers")));
  on_build = nullptr;
  pthread_setattr_default_np(&usual);
}

TEST_F(SolverGroupTest, AllSkipAStepThatOneSpoils) {
  choose_number = [](int rank, uint64_t pass) {
    return rank == 1 && pass == 2 ? std::numeric_limits<float>::infinity() : 0.5f;
  };
  std::string net = kChosen;
  net += " global_grad_scale: 8 dialect: BVLC";
  SolverGroup group(Parse("", net), {.keep_all = false}, 2);
  group.Step(2);
  const std::vector<double> before = Weights(group);
  group.Step(1);
  EXPECT_EQ(Weights(group), before);
  group.Step(1);
  EXPECT_NE(Weights(group), before);
  for (const double weight : Weights(group)) EXPECT_TRUE(std::isfinite(weight));
  ExpectAllWorkersAgree(group);
}

TEST_F(SolverGroupTest, AllStopTogether) {
  SolverGroup group(Parse("max_iter: 100", kRegression), {.keep_all = false}, 3);
  group.solver(0).SetActionFunction(
      [&] { return group.solver(0).iter() == 3 ? SolverAction::STOP : SolverAction::NONE; });
  group.Solve();
  for (int worker = 0; worker < 3; ++worker) EXPECT_EQ(group.solver(worker).iter(), 3);
}

TEST_F(SolverGroupTest, KeepsGradientsReadable) {
  SolverGroup group(Parse("", kRegression), {}, 2);
  group.Step(1);
  const Blob& first = *group.solver(0).net().layer_params("ip1").at(0);
  const Blob& second = *group.solver(1).net().layer_params("ip1").at(0);
  EXPECT_GT(first.asum_diff(), 0);
  EXPECT_EQ(first.asum_diff(), second.asum_diff());
}

TEST_F(SolverGroupTest, RefusesWhatItCannotDivide) {
  EXPECT_THROW(SolverGroup(Parse("", kRegression), {}, 0), InvalidArgument);
  const char* const input = R"(
    layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }
    layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
      inner_product_param { num_output: 1 } }
    layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "y" top: "loss" }
  )";
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { SolverGroup(Parse("", input), {}, 2); }),
              AllOf(HasSubstr("layer 'in' (Input)"), HasSubstr("among 2 workers")));
  EXPECT_THAT(ErrorText<InvalidArgument>(
                  [&] { SolverGroup(Parse("dialect: NVCAFFE", kRegression, 2), {}, 3); }),
              AllOf(HasSubstr("layer 'rows': batch_size 2"), HasSubstr("all 3 workers")));
}

TEST_F(SolverGroupTest, DividesTheBatchWhereNvcaffeDoes) {
  SolverGroup joined(Parse("precision: FP64 dialect: NVCAFFE", kRegression, 12), {}, 1);
  SolverGroup group(Parse("precision: FP64 dialect: NVCAFFE", kRegression, 12), {}, 3);
  EXPECT_EQ(joined.solver(0).net().blob_by_name("x")->shape(0), 12);
  EXPECT_EQ(group.solver(0).net().blob_by_name("x")->shape(0), 4);
}

TEST(BatchDivision, FollowsTheDialect) {
  const auto why = [](const std::string& solver_text, const std::string& net_text) {
    SolverParameter solver;
    NetParameter net;
    ParseTextProto(solver_text, "solver", &solver);
    ParseTextProto(net_text, "net", &net);
    return WhyBatchIsOfAll(solver, net);
  };
  EXPECT_EQ(why("", ""), "");
  EXPECT_EQ(why("dialect: NVCAFFE", ""), "dialect: NVCAFFE");
  EXPECT_EQ(why("", "dialect: NVCAFFE"), "dialect: NVCAFFE");
  EXPECT_EQ(why("dialect: BVLC", "dialect: NVCAFFE"), "");
  EXPECT_EQ(why("larc: true", ""), "larc");
  EXPECT_EQ(why("", "default_forward_type: FLOAT16"), "default_forward_type");
  EXPECT_EQ(why("dialect: BVLC", "default_forward_type: FLOAT16"), "");
  EXPECT_EQ(why("", "layer { name: 'd' type: 'Data' data_param { batch_size: 8 cache: true } }"),
            "cache");
  EXPECT_EQ(why("", "layer { name: 'd' type: 'Data' data_param { batch_size: 8 } }"), "");
}

TEST(BatchDivision, RoundsUp) {
  NetParameter net;
  ParseTextProto("layer { name: 'd' type: 'Data' data_param { batch_size: 10 } }", "net", &net);
  DivideBatchSizes(4, &net);
  EXPECT_EQ(net.layer(0).data_param().batch_size(), 3u);
}

}  // namespace
}  // namespace caffe
