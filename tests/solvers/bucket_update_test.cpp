// Updates of parameters bucket by bucket, while backward continues.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <optional>
#include <sstream>
#include <thread>

#include "caffe/distributed/tcp_communicator.hpp"
#include "caffe/error.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/ops/update_rules.hpp"
#include "caffe/solver_factory.hpp"
#include "caffe/solver_group.hpp"
#include "caffe/trace.hpp"
#include "tests/support/loopback_ranks.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

// A Gate layer calls the first in backward (may be empty) and multiplies by the second in forward.
std::function<void()> on_backward;
std::atomic<float> number_of_gate = 1;

// Passes its bottom on, multiplied by a number that a test chooses.
class GateLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerTraits traits() const override { return {.num_bottoms = 1, .num_tops = 1}; }
  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    return bottoms;
  }
  void EmitForward(GraphBuilder& graph) const override {
    Emit(graph, "gate", graph.bottom(0), graph.top(0), [](float x) { return x * number_of_gate; });
  }
  void EmitBackward(GraphBuilder& graph) const override {
    Emit(graph, "gate backwards", graph.top_diff(0), graph.bottom_diff(0),
         [](float dy) { return dy; });
  }

 private:
  template <typename Fn>
  static void Emit(GraphBuilder& graph, const std::string& what, Value* from, Value* to,
                   const Fn& fn) {
    const bool is_backward = what != "gate";
    const auto call = [fn, is_backward](const KernelContext& ctx) {
      if (is_backward && on_backward) on_backward();
      std::transform(ctx.input(0).as<const float>(),
                     ctx.input(0).as<const float>() + ctx.input(0).count(),
                     ctx.output(0).as<float>(), fn);
    };
    graph.Emit(ops::HostCall{.what = what, .call = call}, {from}, {to});
  }
};
REGISTER_LAYER_CLASS(Gate);

// The number of plain SGD updates so far.
std::atomic<int> updates_made = 0;

void AwaitUpdates(int count) {
  for (int made = updates_made; made < count; made = updates_made) updates_made.wait(made);
}

// The existing kernel, with a counter of its calls.
KernelOrRefusal MakeCountedUpdate(const ops::ParameterUpdate<ops::SgdUpdate>&,
                                  const KernelRequest& request) {
  const auto& candidates = KernelRegistry::Get().Candidates(DeviceKind::kCpu, request.op.type());
  KernelOrRefusal answer = candidates.back().factory(request);
  if (auto* const kernel = std::get_if<Kernel>(&answer)) {
    kernel->run = [run = std::move(kernel->run)](const KernelContext& ctx) {
      run(ctx);
      ++updates_made;
      updates_made.notify_all();
    };
  }
  return answer;
}
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::ParameterUpdate<ops::SgdUpdate>,
                              "counted-update", KernelRank::kBest, MakeCountedUpdate);

// A convolution, weights that three layers share (including the first and the last layer of
// backward), a recurrent layer, and parameters that do not learn.
constexpr char kBucketNet[] = R"(
  name: "buckets" reduce_buckets: 5
  layer { name: "x" type: "DummyData" top: "x" top: "t"
    dummy_data_param { shape { dim: 4 dim: 2 dim: 5 dim: 5 } shape { dim: 4 dim: 12 }
      data_filler { type: "gaussian" } data_filler { type: "gaussian" } } }
  layer { name: "conv" type: "Convolution" bottom: "x" top: "c"
    convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
  layer { name: "bn" type: "BatchNorm" bottom: "c" top: "c" }
  layer { name: "scale" type: "Scale" bottom: "c" top: "c" scale_param { bias_term: true } }
  layer { name: "relu" type: "ReLU" bottom: "c" top: "c" }
  layer { name: "in" type: "InnerProduct" bottom: "c" top: "h0"
    inner_product_param { num_output: 12 weight_filler { type: "xavier" } } }
  layer { name: "one" type: "InnerProduct" bottom: "h0" top: "h1" param { name: "w" }
    param { lr_mult: 0 } inner_product_param { num_output: 12 weight_filler { type: "xavier" } } }
  layer { name: "tanh" type: "TanH" bottom: "h1" top: "h1" }
  layer { name: "steps" type: "Reshape" bottom: "h1" top: "steps"
    reshape_param { shape { dim: 4 dim: 1 dim: 12 } } }
  layer { name: "more" type: "DummyData" top: "cont"
    dummy_data_param { shape { dim: 4 dim: 1 } data_filler { type: "constant" value: 1 } } }
  layer { name: "lstm" type: "LSTM" bottom: "steps" bottom: "cont" top: "l"
    recurrent_param { num_output: 12 weight_filler { type: "xavier" } } }
  layer { name: "rows" type: "Reshape" bottom: "l" top: "rows"
    reshape_param { shape { dim: 4 dim: 12 } } }
  layer { name: "two" type: "InnerProduct" bottom: "rows" top: "h2" param { name: "w" }
    inner_product_param { num_output: 12 weight_filler { type: "xavier" } } }
  layer { name: "relu2" type: "ReLU" bottom: "h2" top: "h2" }
  layer { name: "out" type: "InnerProduct" bottom: "h2" top: "h3"
    inner_product_param { num_output: 12 weight_filler { type: "xavier" } } }
  layer { name: "three" type: "InnerProduct" bottom: "h3" top: "y" param { name: "w" }
    inner_product_param { num_output: 12 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
)";

// A net with a Gate between two layers of about equal size, each with its own bucket.
constexpr char kGatedNet[] = R"(
  name: "gated" reduce_buckets: 2
  layer { name: "x" type: "DummyData" top: "x" top: "t"
    dummy_data_param { shape { dim: 2 dim: 8 } shape { dim: 2 dim: 8 }
      data_filler { type: "gaussian" } data_filler { type: "gaussian" } } }
  layer { name: "ip1" type: "InnerProduct" bottom: "x" top: "h"
    inner_product_param { num_output: 8 weight_filler { type: "xavier" } } }
  layer { name: "gate" type: "Gate" bottom: "h" top: "g" }
  layer { name: "ip2" type: "InnerProduct" bottom: "g" top: "y"
    inner_product_param { num_output: 8 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
)";

SolverParameter ParseBucketSolver(const std::string& options, const std::string& net) {
  SolverParameter solver;
  ParseTextProto(
      "solver_mode: CPU random_seed: 7 lr_policy: 'step' stepsize: 4 gamma: 0.5 "
      "weight_decay: 0.01 " +
          options + " net_param { " + net + " }",
      "test", &solver);
  if (!solver.has_base_lr()) solver.set_base_lr(0.01f);
  return solver;
}

// The bits of all parameters and of the history.
std::string BitsOfSolver(Solver& solver) {
  std::string bits;
  const auto add = [&](const Blob& blob) {
    const double* values = blob.cpu_data<double>();
    bits.append(reinterpret_cast<const char*>(values), blob.count() * sizeof(double));
  };
  for (size_t layer = 0; layer < solver.net().layers().size(); ++layer) {
    for (const auto& blob : solver.net().layer_params(static_cast<int>(layer))) add(*blob);
  }
  for (const auto& blob : solver.history()) add(*blob);
  return bits;
}

size_t CountInText(const std::string& what, const std::string& text) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

constexpr int kBucketSteps = 6;

struct BucketOutcome {
  std::string bits;
  size_t bucket_updates = 0;
};

// With `looks_on` solvers have callbacks, so the update comes at the end.
BucketOutcome TrainBuckets(const SolverParameter& param, int workers, bool looks_on) {
  Trace trace;
  BucketOutcome outcome;
  {
    SolverGroup group(param, {.keep_all = false, .trace = &trace}, workers);
    for (int worker = 0; looks_on && worker < workers; ++worker)
      group.solver(worker).AddCallbacks({});
    group.Step(kBucketSteps);
    outcome.bits = BitsOfSolver(group.solver(0));
    for (int worker = 1; worker < workers; ++worker)
      EXPECT_EQ(BitsOfSolver(group.solver(worker)), outcome.bits) << "worker " << worker;
  }
  std::ostringstream json;
  trace.WriteJson(json);
  outcome.bucket_updates = CountInText("update bucket", json.str());
  return outcome;
}

// Ranks that look like processes to their solvers.
std::string TrainRanks(const SolverParameter& param, int ranks) {
  const int port = testing::FreePort();
  std::vector<std::string> bits(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto communicator = MakeTcpCommunicator(testing::LoopbackRank(rank, ranks, port));
      Solver solver(param, {.keep_all = false, .communicator = communicator});
      solver.Step(kBucketSteps);
      bits[rank] = BitsOfSolver(solver);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(bits, ::testing::Each(bits[0]));
  return bits[0];
}

class BucketUpdates : public ::testing::Test {
 protected:
  BucketUpdates() { on_backward = nullptr, number_of_gate = 1, updates_made = 0; }
  testing::TemporaryFolder folder_;
};

TEST_F(BucketUpdates, MakeTheSameBitsWithEachRule) {
  for (const std::string& type : SolverTypeList()) {
    const bool has_momentum = type != "AdaGrad" && type != "RMSProp" && type != "AdaSecant";
    std::string options = StrCat("type: '", type, "' ");
    if (has_momentum) options += "momentum: 0.9 ";
    for (const int workers : {2, 4}) {
      SCOPED_TRACE(StrCat(options, ", ", workers, " workers"));
      const SolverParameter param = ParseBucketSolver(options, kBucketNet);
      const BucketOutcome early = TrainBuckets(param, workers, false),
                          late = TrainBuckets(param, workers, true);
      EXPECT_EQ(early.bits, late.bits);
      EXPECT_EQ(early.bucket_updates % (kBucketSteps * static_cast<size_t>(workers)), 0u);
      EXPECT_GE(early.bucket_updates, 3u * kBucketSteps * static_cast<size_t>(workers));
      EXPECT_EQ(late.bucket_updates, 0u);
    }
  }
}

TEST_F(BucketUpdates, MakeTheSameBitsInEachPrecisionAndOption) {
  for (const std::string options :
       {"momentum: 0.9 precision: FP64", "momentum: 0.9 precision: BF16",
        "momentum: 0.9 iter_size: 3", "momentum: 0.9 larc: true larc_eta: 0.1",
        "momentum: 0.9 larc: true larc_turbo: true larc_eta: 0.1 iter_size: 2",
        "type: 'Adam' momentum: 0.9 precision: BF16 regularization_type: 'L1'"}) {
    SCOPED_TRACE(options);
    const SolverParameter param = ParseBucketSolver("dialect: BVLC " + options, kBucketNet);
    const BucketOutcome early = TrainBuckets(param, 2, false);
    EXPECT_EQ(early.bits, TrainBuckets(param, 2, true).bits);
    EXPECT_GT(early.bucket_updates, 0u);
    EXPECT_EQ(early.bits, TrainRanks(param, 2));
  }
}

TEST_F(BucketUpdates, WaitForAllGradientsWhereAStepNeedsThem) {
  const std::string nets[] = {kBucketNet, std::string(kBucketNet) + " global_grad_scale: 8"};
  for (const auto& [options, net] :
       {std::pair(std::string("clip_gradients: 0.1"), nets[0]),
        {"momentum: 0.9", nets[1]},
        {"lr_policy: 'plateau' gamma: 0.5 plateau_winsize: 2", nets[0]},
        {"display: 1", nets[0]},
        {"watchdog: 'abort'", nets[0]},
        {"debug_info: true", nets[0]}}) {
    SCOPED_TRACE(options);
    SolverParameter param = ParseBucketSolver("dialect: BVLC", net);
    SolverParameter more;
    ParseTextProto(options, "test", &more);
    param.MergeFrom(more);
    const BucketOutcome outcome = TrainBuckets(param, 2, false);
    EXPECT_EQ(outcome.bucket_updates, 0u);
    EXPECT_EQ(outcome.bits, TrainBuckets(param, 2, true).bits);
  }
}

// The events of a trace, ordered by time.
struct BucketSpan {
  std::string name;
  double begin = 0, end = 0;
};
std::vector<BucketSpan> BucketSpansOf(const Trace& trace, const std::string& name) {
  std::ostringstream json;
  trace.WriteJson(json);
  const std::string text = json.str();
  std::vector<BucketSpan> spans;
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const size_t open = text.rfind('{', at), close = text.find('}', at);
    const std::string event = text.substr(open, close - open);
    const auto number = [&](const std::string& field) {
      return std::stod(event.substr(event.find(field) + field.size()));
    };
    const double begin = number("\"ts\":");
    spans.push_back({name, begin, begin + number("\"dur\":")});
  }
  return spans;
}

// Two workers with two buckets each: four updates per step, two of them before the Gate lets
// backward continue.
TEST_F(BucketUpdates, BeginBeneathBackward) {
  std::atomic<int> gates = 0;
  on_backward = [&] { AwaitUpdates(4 * (gates++ / 2) + 2); };
  Trace trace;
  {
    SolverGroup group(ParseBucketSolver("", kGatedNet), {.keep_all = false, .trace = &trace}, 2);
    group.Step(10);
  }
  const std::vector<BucketSpan> backward = BucketSpansOf(trace, "\"backward\"");
  const std::vector<BucketSpan> updates = BucketSpansOf(trace, "\"update bucket 0\"");
  EXPECT_EQ(backward.size(), 20u);
  ASSERT_EQ(updates.size(), 20u);
  const auto beneath = std::count_if(updates.begin(), updates.end(), [&](const BucketSpan& update) {
    return std::any_of(backward.begin(), backward.end(), [&](const BucketSpan& pass) {
      return pass.begin < update.begin && update.begin < pass.end;
    });
  });
  EXPECT_EQ(beneath, 20);
}

TEST_F(BucketUpdates, DoNotHappenWhereALossIsNotANumber) {
  SolverGroup group(ParseBucketSolver("", kGatedNet), {.keep_all = false}, 2);
  group.Step(2);
  const std::string before = BitsOfSolver(group.solver(0));
  number_of_gate = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT([&] { group.Step(1); }, ThrowsMessage<Error>(HasSubstr("layer 'gate' (Gate)")));
  for (int worker = 0; worker < 2; ++worker) EXPECT_EQ(BitsOfSolver(group.solver(worker)), before);
}

// Then the weights contain half of a step, and no other may follow.
TEST_F(BucketUpdates, AreNotGoneOnFromWhenBackwardFails) {
  const SolverParameter param =
      ParseBucketSolver(StrCat("snapshot_prefix: '", folder_.path("run"), "'"), kGatedNet);
  SolverGroup group(param, {.keep_all = false}, 2);
  group.Step(2);
  const std::string state = group.Snapshot();
  const std::string before = BitsOfSolver(group.solver(0));
  updates_made = 0;
  on_backward = [] {
    AwaitUpdates(2);
    throw IoError("no more");
  };
  EXPECT_THROW(group.Step(1), IoError);
  EXPECT_NE(BitsOfSolver(group.solver(0)), before);
  EXPECT_THAT([&] { group.solver(0).Snapshot(); },
              ThrowsMessage<InvalidArgument>(HasSubstr("iteration 2 failed while weights")));
  EXPECT_THAT([&] { group.solver(0).Step(1); },
              ThrowsMessage<InvalidArgument>(HasSubstr("restore a snapshot")));
  on_backward = nullptr;
  SolverGroup again(param, {.keep_all = false}, 2);
  again.Restore(state);
  EXPECT_EQ(BitsOfSolver(again.solver(0)), before);
}

// Callbacks prevent updates during backward.
TEST_F(BucketUpdates, AStepThatHasUpdatedNothingMayBeTakenBack) {
  SolverGroup group(
      ParseBucketSolver(StrCat("snapshot_prefix: '", folder_.path("run"), "'"), kGatedNet),
      {.keep_all = false}, 2);
  for (int worker = 0; worker < 2; ++worker) group.solver(worker).AddCallbacks({});
  group.Step(2);
  const std::string before = BitsOfSolver(group.solver(0));
  on_backward = [] { throw IoError("no more"); };
  EXPECT_THROW(group.Step(1), IoError);
  EXPECT_EQ(BitsOfSolver(group.solver(0)), before);
  EXPECT_NO_THROW(group.solver(0).Snapshot());
}

}  // namespace
}  // namespace caffe
