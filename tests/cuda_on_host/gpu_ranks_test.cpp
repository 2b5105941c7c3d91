// Several GPUs, driven by the threads of one process or by one process each (simulated by threads
// that share only the loopback network), over an emulated NCCL.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/common.hpp"
#include "caffe/device/device.hpp"
#include "caffe/distributed/communicator.hpp"
#include "caffe/distributed/gpu_communicators.hpp"
#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "caffe/ranks.hpp"
#include "caffe/solver.hpp"
#include "caffe/solver_group.hpp"
#include "tests/support/loopback_ranks.hpp"
#include "tests/support/temporary_folder.hpp"
#include "work_queue.hpp"

namespace caffe {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr const char* kNet = R"pb(
  layer {
    name: "data"
    type: "DummyData"
    top: "data"
    top: "label"
    dummy_data_param {
      shape { dim: 6 dim: 3 dim: 8 dim: 8 }
      shape { dim: 6 }
      data_filler { type: "gaussian" }
      data_filler { type: "constant" value: 2 }
    }
  }
  layer {
    name: "conv"
    type: "Convolution"
    bottom: "data"
    top: "conv"
    convolution_param {
      num_output: 5
      kernel_size: 3
      bias_term: false
      weight_filler { type: "xavier" }
    }
  }
  layer { name: "bn" type: "BatchNorm" bottom: "conv" top: "bn" }
  layer { name: "relu" type: "ReLU" bottom: "bn" top: "bn" }
  layer {
    name: "ip1"
    type: "InnerProduct"
    bottom: "bn"
    top: "ip1"
    inner_product_param {
      num_output: 7
      weight_filler { type: "xavier" }
    }
  }
  layer {
    name: "ip2"
    type: "InnerProduct"
    bottom: "ip1"
    top: "ip2"
    inner_product_param {
      num_output: 4
      weight_filler { type: "xavier" }
    }
  }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
)pb";

SolverParameter RanksSolver(const std::string& options) {
  SolverParameter param;
  ParseTextProto(
      "base_lr: 0.01 momentum: 0.9 lr_policy: 'exp' gamma: 0.9 weight_decay: 0.01 "
      "random_seed: 3 max_iter: 9 snapshot_after_train: false " +
          options + " net_param { " + kNet + " }",
      "solver", &param);
  return param;
}

std::vector<float> WeightsOf(Solver& solver) {
  std::vector<float> weights;
  for (const auto& layer : solver.net().layers()) {
    for (const auto& blob : solver.net().layer_params(layer->name())) {
      const float* values = blob->cpu_data<float>();
      weights.insert(weights.end(), values, values + blob->count());
    }
  }
  return weights;
}

void ExpectNear(const std::vector<float>& found, const std::vector<float>& want) {
  ASSERT_EQ(found.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(found[i], want[i], 2e-3) << i;
}

std::vector<float> WeightsOfWorkers(const SolverParameter& param, int workers, int iterations) {
  SolverGroup group(param, {.keep_all = false}, workers);
  group.Step(iterations);
  return WeightsOf(group.solver(0));
}

class CudaRanksTest : public ::testing::Test {
 protected:
  CudaRanksTest() { Caffe::set_mode(Caffe::GPU); }
  ~CudaRanksTest() override { Caffe::set_mode(Caffe::CPU); }

  using Body = std::function<void(int rank, Solver& solver)>;

  // One rank for each element, on that GPU or on the CPU. Returns each one's error ("" for none).
  static std::vector<std::string> RunRanks(const SolverParameter& param,
                                           const std::vector<std::optional<int>>& gpus,
                                           const Body& body) {
    const int port = testing::FreePort();
    std::vector<std::string> errors(gpus.size());
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < gpus.size(); ++rank) {
      threads.emplace_back([&, rank] {
        RankOptions ranks;
        ranks.rank = static_cast<int>(rank);
        ranks.ranks = static_cast<int>(gpus.size());
        ranks.store = StrCat("127.0.0.1:", port);
        ranks.secret = "open sesame";
        ranks.join_seconds = 600;
        ranks.gpu = gpus[rank];
        std::shared_ptr<Communicator> communicator;
        try {
          communicator = JoinRanks(ranks);
          Solver solver(param,
                        {.keep_all = false, .gpu = gpus[rank], .communicator = communicator});
          body(ranks.rank, solver);
        } catch (const std::exception& error) {
          errors[rank] = error.what();
          if (communicator != nullptr) communicator->Abort(std::current_exception());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return errors;
  }
};

// From the second iteration on, steps are recorded and replayed while gradients are reduced.
TEST_F(CudaRanksTest, GpusOfAProcessReplayAndEndWhereWorkersDo) {
  for (const char* options : {"", "type: 'Adam' iter_size: 2"}) {
    SCOPED_TRACE(options);
    const SolverParameter param = RanksSolver(options);
    SolverGroup gpus(param, {.keep_all = false}, std::vector<int>{0, 2, 3});
    gpus.Step(9);
    Caffe::set_mode(Caffe::CPU);
    const std::vector<float> want = WeightsOfWorkers(param, 3, 9);
    Caffe::set_mode(Caffe::GPU);
    for (int gpu = 0; gpu < 3; ++gpu) ExpectNear(WeightsOf(gpus.solver(gpu)), want);
  }
}

// Compares the parameters of layers that learn: running statistics count passes.
double LargestDifference(Solver& one, Solver& other) {
  double difference = 0;
  for (const char* layer : {"conv", "ip1", "ip2"}) {
    for (size_t k = 0; k < one.net().layer_params(layer).size(); ++k) {
      const Blob &a = *one.net().layer_params(layer)[k], &b = *other.net().layer_params(layer)[k];
      for (int64_t i = 0; i < a.count(); ++i) {
        difference =
            std::max(difference, std::abs(double{a.cpu_data<float>()[i]} - b.cpu_data<float>()[i]));
      }
    }
  }
  return difference;
}

// Two GPUs take the passes that one GPU takes with iter_size: 2, and sums have the same order. 200
// iterations take long.
TEST_F(CudaRanksTest, TwoGpusEndWhereOneDoesWithTwiceThePasses) {
  const int iterations = std::getenv("CAFFE_SLOW_TESTS") != nullptr ? 200 : 20;
  SolverParameter param = RanksSolver("");
  param.set_lr_policy("fixed");
  param.set_max_iter(iterations);
  SolverGroup two(param, {.keep_all = false}, std::vector<int>{0, 1});
  two.Step(iterations);
  param.set_iter_size(2);
  SolverGroup one(param, {.keep_all = false}, std::vector<int>{0});
  one.Step(iterations);
  EXPECT_EQ(WeightsOf(two.solver(1)), WeightsOf(two.solver(0)));
  EXPECT_EQ(LargestDifference(two.solver(0), one.solver(0)), 0);
}

// Tests and snapshots in between, and at the end the loss of a single forward pass. While a rank
// waits for another one, the emulated devices refuse whatever may wait for a GPU.
TEST_F(CudaRanksTest, RunsWithTestsSnapshotsAndADisplayedLossEnd) {
  for (const char* passes : {"", "iter_size: 2"}) {
    SCOPED_TRACE(passes);
    const testing::TemporaryFolder folder;
    SolverParameter param =
        RanksSolver(StrCat("display: 10 test_interval: 12 test_iter: 2 snapshot: 15 ", passes));
    param.set_snapshot_after_train(true);
    param.set_snapshot_prefix(folder / "ranks");
    param.set_max_iter(40);
    SolverGroup gpus(param, {.keep_all = false}, std::vector<int>{0, 1});
    gpus.Solve();
    EXPECT_EQ(LargestDifference(gpus.solver(1), gpus.solver(0)), 0);
    for (const char* iteration : {"15", "30", "40"})
      EXPECT_TRUE(
          std::filesystem::exists(folder / StrCat("ranks_iter_", iteration, ".solverstate")));
  }
}

// So that they do not wait behind the kernels of backward that follow.
TEST_F(CudaRanksTest, ReductionsHaveStreamsThatGoFirst) {
  const int64_t before = cuda_on_host::UrgentStreamsSoFar();
  const SolverGroup gpus(RanksSolver(""), {.keep_all = false}, std::vector<int>{0, 1});
  EXPECT_EQ(cuda_on_host::UrgentStreamsSoFar(), before + 2);
}

TEST_F(CudaRanksTest, ProcessesEndWhereGpusOfAProcessDo) {
  const SolverParameter param = RanksSolver("");
  SolverGroup group(param, {.keep_all = false}, std::vector<int>{0, 1});
  group.Step(9);
  std::vector<std::vector<float>> weights(2);
  std::vector<int64_t> graphs(2);
  const auto errors = RunRanks(param, {1, 3}, [&](int rank, Solver& solver) {
    solver.Step(9);
    weights[rank] = WeightsOf(solver);
    graphs[rank] = cuda_on_host::LaunchesSoFar().graphs;
  });
  EXPECT_THAT(errors, Each(""));
  EXPECT_EQ(weights[0], WeightsOf(group.solver(0)));
  EXPECT_EQ(weights[1], weights[0]);
  EXPECT_THAT(graphs, Each(::testing::Gt(0)));
}

// A bucket is launched as a whole, not gradient by gradient.
TEST_F(CudaRanksTest, RecordedStepsEndWithBuckets) {
  for (const int buckets : {1, 2}) {
    SolverParameter param = RanksSolver("");
    param.mutable_net_param()->set_reduce_buckets(buckets);
    std::vector<int64_t> graphs(2);
    const auto errors = RunRanks(param, {0, 1}, [&](int rank, Solver& solver) {
      solver.Step(3);
      const int64_t before = cuda_on_host::LaunchesSoFar().graphs;
      solver.Step(1);
      graphs[rank] = cuda_on_host::LaunchesSoFar().graphs - before;
    });
    EXPECT_THAT(errors, Each(""));
    EXPECT_THAT(graphs, Each(::testing::Le(buckets + 1))) << "one for what follows the last bucket";
  }
}

// The number of launches and reductions is the same as with one layer of statistics.
TEST_F(CudaRanksTest, StatisticsOfAllLayersTravelAsOne) {
  std::vector<int64_t> launches;
  for (const int layers : {1, 9}) {
    SolverParameter param = RanksSolver("");
    NetParameter& net = *param.mutable_net_param();
    const LayerParameter norm = net.layer(2);
    for (int i = 1; i < layers; ++i) {
      LayerParameter& layer = *net.add_layer();
      layer = norm;
      layer.set_name(StrCat("bn", i));
      layer.set_bottom(0, "bn");
      layer.set_top(0, "bn");
      for (int at = net.layer_size() - 1; at > 3; --at)
        net.mutable_layer()->SwapElements(at, at - 1);
    }
    std::vector<int64_t> singly(2);
    const auto errors = RunRanks(param, {0, 1}, [&](int rank, Solver& solver) {
      solver.Step(3);
      const int64_t before = cuda_on_host::LaunchesSoFar().singly;
      solver.Step(1);
      singly[rank] = cuda_on_host::LaunchesSoFar().singly - before;
    });
    EXPECT_THAT(errors, Each(""));
    launches.push_back(singly[0]);
  }
  EXPECT_EQ(launches[1], launches[0]);
}

TEST_F(CudaRanksTest, GoOnFromASnapshot) {
  const testing::TemporaryFolder folder;
  SolverParameter param = RanksSolver("type: 'Adam'");
  param.set_snapshot_prefix(folder / "ranks");
  std::vector<float> whole, resumed;
  std::string state;
  EXPECT_THAT(RunRanks(param, {0, 1},
                       [&](int rank, Solver& solver) {
                         solver.Step(4);
                         const std::string file = solver.Snapshot();
                         solver.Step(4);
                         if (rank == 0) state = file, whole = WeightsOf(solver);
                       }),
              Each(""));
  EXPECT_THAT(RunRanks(param, {2, 3},
                       [&](int rank, Solver& solver) {
                         solver.Restore(folder / "ranks_iter_4.solverstate");
                         solver.Step(4);
                         if (rank == 1) resumed = WeightsOf(solver);
                       }),
              Each(""));
  EXPECT_FALSE(state.empty());
  EXPECT_EQ(resumed, whole);
}

TEST_F(CudaRanksTest, OneThatFailsEndsTheOthers) {
  const auto errors = RunRanks(RanksSolver(""), {0, 1, 2}, [](int rank, Solver& solver) {
    solver.Step(3);
    if (rank == 1) throw IoError("the disk of rank 1 is full");
    solver.Step(1000000);
  });
  EXPECT_THAT(errors, Each(HasSubstr("the disk of rank 1 is full")));
}

TEST_F(CudaRanksTest, AGpuUsedTwiceIsRefused) {
  const auto errors = RunRanks(RanksSolver(""), {1, 0, 1}, [](int, Solver&) {});
  EXPECT_THAT(errors, Each(AllOf(HasSubstr("ranks 0 and 2 train on the same GPU"),
                                 HasSubstr("emulated GPU 1"))));
}

TEST_F(CudaRanksTest, GpusAndProcessorsDoNotMix) {
  const auto errors = RunRanks(RanksSolver(""), {0, std::nullopt}, [](int, Solver&) {});
  EXPECT_THAT(errors, Each(HasSubstr("rank 1 trains on the CPU, but rank 0 on a GPU")));
}

// Another communicator's, but on request its large reductions wait for a sum within the pass.
class BucketsAfterLoss final : public Communicator {
 public:
  explicit BucketsAfterLoss(std::shared_ptr<Communicator> inner) : inner_(std::move(inner)) {}
  void Begin() { holds_ = true; }
  int sums() const { return sums_; }

  int rank() const override { return inner_->rank(); }
  int ranks() const override { return inner_->ranks(); }
  int ranks_in_process() const override { return inner_->ranks_in_process(); }
  void AllReduceMean(const TensorView& tensor, DType wire, Event& filled) override {
    const bool is_bucket = tensor.count() > 500;
    if (is_bucket && holds_) loss_sent_.acquire();
    inner_->AllReduceMean(tensor, wire, filled);
  }
  void AllReduceSum(std::span<double> numbers) override {
    ++sums_;
    inner_->AllReduceSum(numbers);
  }
  std::vector<std::string> AllGather(const std::string& text) override {
    return inner_->AllGather(text);
  }
  void AllReduceSumInPass(std::span<double> numbers) override {
    inner_->AllReduceSumInPass(numbers);
    if (holds_) loss_sent_.release();
  }
  void ExchangeInPass(std::span<const std::span<const char>> sent,
                      std::span<const std::span<char>> received) override {
    inner_->ExchangeInPass(sent, received);
  }
  void Abort(std::exception_ptr error) override { inner_->Abort(error); }
  void ThrowIfAborted() override { inner_->ThrowIfAborted(); }

 private:
  const std::shared_ptr<Communicator> inner_;
  std::atomic<bool> holds_ = false;
  std::atomic<int> sums_ = 0;
  std::counting_semaphore<> loss_sent_{0};
};

// So that it costs no message after the last bucket; only the decision to stop does.
TEST_F(CudaRanksTest, TheLossTravelsWhileABucketIsReduced) {
  SolverParameter param = RanksSolver("");
  param.mutable_net_param()->set_reduce_buckets(1);
  const auto communicators = MakeGpuCommunicators({0, 1});
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const auto communicator = std::make_shared<BucketsAfterLoss>(communicators[rank]);
      Solver solver(param, {.keep_all = false, .gpu = rank, .communicator = communicator});
      solver.Step(3);
      communicator->Begin();
      const int before = communicator->sums();
      solver.Step(4);
      EXPECT_EQ(communicator->sums(), before + 4);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Rounded before and after they are added, as between CPUs.
TEST_F(CudaRanksTest, GradientsTravelInTheTypeAskedFor) {
  const std::vector<float> whole = [] {
    SolverGroup gpus(RanksSolver(""), {.keep_all = false}, std::vector<int>{0, 1});
    gpus.Step(9);
    return WeightsOf(gpus.solver(0));
  }();
  for (const auto& [type, bound] : std::map<Type, float>{{FLOAT16, 2e-4f}, {BFLOAT16, 2e-3f}}) {
    SCOPED_TRACE(Type_Name(type));
    SolverParameter param = RanksSolver("");
    param.mutable_net_param()->set_reduce_type(type);
    SolverGroup gpus(param, {.keep_all = false}, std::vector<int>{0, 1});
    gpus.Step(9);
    const std::vector<float> found = WeightsOf(gpus.solver(0));
    EXPECT_EQ(WeightsOf(gpus.solver(1)), found);
    EXPECT_NE(found, whole);
    for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], whole[i], bound) << i;
  }
}

// The mean of gradients is a number of the type in which they travelled.
TEST_F(CudaRanksTest, MeansAreRoundedToTheTypeAskedFor) {
  const auto communicators = MakeGpuCommunicators({0, 1});
  const std::vector<std::vector<float>> numbers = {{1.0f / 3, -7.1f, 300}, {2.0f / 7, 1e-3f, 5}};
  std::vector<std::thread> threads;
  std::vector<std::vector<float>> found = numbers;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const std::shared_ptr<Device> own = MakeDevice(DeviceKind::kCuda, rank);
      const size_t bytes = numbers[rank].size() * sizeof(float);
      const std::shared_ptr<void> memory = own->Allocate(bytes);
      const TensorView tensor{{Shape{3}, DType::kFloat}, memory.get()};
      communicators[rank]->Prepare(tensor, DType::kBFloat16);
      own->CopyFromHost(memory.get(), numbers[rank].data(), bytes);
      const std::unique_ptr<Event> filled = own->MakeEvent();
      own->compute_stream().Record(*filled);
      double none = 0;
      communicators[rank]->AllReduceSum({&none, 1});
      communicators[rank]->AllReduceMean(tensor, DType::kBFloat16, *filled);
      own->CopyToHost(found[rank].data(), memory.get(), bytes);
      communicators[rank]->AllReduceSum({&none, 1});
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < 3; ++i) {
    const auto rounded = [](float x) { return static_cast<float>(bfloat16(x)); };
    const float want = rounded((rounded(numbers[0][i]) + rounded(numbers[1][i])) / 2);
    EXPECT_EQ(found[0][i], want);
    EXPECT_EQ(found[1][i], want);
  }
}

// Everything on a recording stream is recorded: a GPU would record the event, not place it.
TEST_F(CudaRanksTest, NobodyPlacesAnEventOnAStreamThatRecords) {
  const std::shared_ptr<Device> device = MakeDevice(DeviceKind::kCuda, 0);
  const std::unique_ptr<Event> event = device->MakeEvent();
  device->compute_stream().BeginCapture();
  std::thread([&] { EXPECT_THROW(device->compute_stream().Record(*event), InternalError); }).join();
  device->compute_stream().EndCapture();
}

// Work on other streams does not wait unless it is told to.
TEST_F(CudaRanksTest, StreamsAreInOrderByEventsAlone) {
  const std::shared_ptr<Device> device = MakeDevice(DeviceKind::kCuda, 0);
  const std::shared_ptr<void> memory = device->Allocate(1), copy = device->Allocate(1);
  device->Synchronize();
  const char one = 1;
  char found = 0;
  for (const bool waits : {false, true}) {
    const std::unique_ptr<Stream> other = device->MakeStream();
    const std::unique_ptr<Event> filled = device->MakeEvent();
    device->compute_stream().FillZero(memory.get(), 1);
    device->Synchronize();
    device->compute_stream().CopyFromHost(memory.get(), &one, 1);
    device->compute_stream().Record(*filled);
    if (waits) other->Wait(*filled);
    other->CopyToHost(&found, memory.get(), 1);
    EXPECT_EQ(found == one, waits);
  }
}

}  // namespace
}  // namespace caffe
