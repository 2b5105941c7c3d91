// Guarantees of the passes together: memory that does not overlap, casts where types differ, and a
// verifier that notices a broken graph.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "caffe/graph/graph.hpp"
#include "caffe/graph/printer.hpp"
#include "caffe/graph/verifier.hpp"
#include "caffe/io/net_files.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/net.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/gemm.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/ops/pointwise.hpp"
#include "tests/support/folders.hpp"
#include "tests/support/planned_ops.hpp"

namespace caffe {
namespace {

NetParameter Benchmark(const std::string& name) {
  NetParameter param =
      ReadNetText(testing::SourcePath(StrCat("benchmarks/nets/", name, ".prototxt")));
  param.mutable_state()->set_phase(TRAIN);
  return param;
}

class PlanMemoryTest : public ::testing::TestWithParam<const char*> {};

// Simulates the plan: each byte range belongs to the value written last, and a value is read only
// while its range still belongs to it.
TEST_P(PlanMemoryTest, NoValueIsOverwrittenWhileItIsNeeded) {
  const Net net(Benchmark(GetParam()), {.keep_all = false, .seed = 1, .allocate = false});
  const std::vector<Node*> nodes = net.graph().ScheduledNodes();
  struct Life {
    const Value* value;
    int first, last;
  };
  std::map<const Value*, Life> lives;
  for (int step = 0; step < static_cast<int>(nodes.size()); ++step) {
    const auto touch = [&](const Value* value) {
      if (value == nullptr || value->arena_offset < 0) return;
      Life& life = lives.emplace(value, Life{value, step, step}).first->second;
      life.last = step;
    };
    for (const Value* input : nodes[step]->inputs) touch(input);
    for (const Value* output : nodes[step]->outputs) touch(output);
  }
  const auto overlaps = [](const Value& a, const Value& b) {
    return a.arena_offset < b.arena_offset + static_cast<int64_t>(b.desc.bytes()) &&
           b.arena_offset < a.arena_offset + static_cast<int64_t>(a.desc.bytes());
  };
  std::vector<Life> all;
  for (const auto& [value, life] : lives) all.push_back(life);
  for (const Life& a : all) {
    EXPECT_LE(a.value->arena_offset + static_cast<int64_t>(a.value->desc.bytes()),
              net.graph().arena_bytes);
    for (const Life& b : all) {
      if (b.first <= a.first || b.first > a.last || !overlaps(*a.value, *b.value)) continue;
      // b appears while a is needed: only if a's last reader writes in place, or as a view of a.
      const Node& writer = *nodes[b.first];
      const bool reads_a =
          std::find(writer.inputs.begin(), writer.inputs.end(), a.value) != writer.inputs.end();
      EXPECT_TRUE(reads_a && (writer.op.is_view() || (writer.op.in_place() && a.last == b.first)))
          << b.value->name << " overwrites " << a.value->name << " in " << PrintNode(writer);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, PlanMemoryTest,
                         ::testing::Values("lenet", "alexnet", "googlenet", "resnet50"));

constexpr const char* kSmallNet = R"pb(
  name: "small"
  layer {
    name: "data"
    type: "DummyData"
    top: "data"
    top: "label"
    dummy_data_param {
      shape { dim: 8 dim: 3 dim: 9 dim: 9 }
      shape { dim: 8 }
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
      num_output: 8
      kernel_size: 3
      weight_filler { type: "xavier" }
    }
  }
  layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
  layer {
    name: "ip"
    type: "InnerProduct"
    bottom: "conv"
    top: "ip"
    inner_product_param {
      num_output: 4
      weight_filler { type: "xavier" }
    }
  }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)pb";

NetParameter Small(const std::string& defaults) {
  NetParameter param;
  ParseTextProto(kSmallNet + defaults, "small", &param);
  param.mutable_state()->set_phase(TRAIN);
  return param;
}

TEST(InsertCastsTest, FloatNetsHaveNone) {
  EXPECT_EQ(testing::CountOps(Net(Small(""), {.keep_all = false, .seed = 1}), "Cast"), 0);
}

// Training with every 16-bit type gives nearly the same loss as float; losses are kept in float.
class StorageTypeTest : public ::testing::TestWithParam<const char*> {};

TEST_P(StorageTypeTest, GivesNearlyFloatsLoss) {
  const std::string type = GetParam();
  Net exact(Small(""), {.keep_all = false, .seed = 1});
  Net stored(Small("default_forward_type: " + type + " default_backward_type: " + type),
             {.keep_all = false, .seed = 1});
  EXPECT_EQ(testing::CountOps(stored, "Cast") > 0,
            type != "DOUBLE");  // doubles are never cast
  const float loss = exact.ForwardBackward();
  EXPECT_NEAR(stored.ForwardBackward(), loss, 0.03 * loss);
  for (size_t k = 0; k < exact.learnable_params().size(); ++k) {
    const Blob &a = *exact.learnable_params()[k].blob, &b = *stored.learnable_params()[k].blob;
    EXPECT_NEAR(std::sqrt(b.sumsq_diff()), std::sqrt(a.sumsq_diff()),
                0.05 * std::sqrt(a.sumsq_diff()) + 1e-3)
        << exact.learnable_params()[k].name;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, StorageTypeTest,
                         ::testing::Values("DOUBLE", "FLOAT16", "BFLOAT16"));

TEST(SelectKernelsTest, DoublesAreComputedByOpenBlas) {
  const auto& candidates = KernelRegistry::Get().Candidates(DeviceKind::kCpu, typeid(ops::Gemm));
  if (std::ranges::find(candidates, "gemm-openblas", &KernelCandidate::name) == candidates.end())
    GTEST_SKIP() << "this build has no OpenBLAS";
  const Net net(Small("default_forward_type: DOUBLE default_backward_type: DOUBLE"),
                {.keep_all = false, .seed = 1});
  int products = 0;
  for (const Node* node : net.graph().ScheduledNodes()) {
    if (node->op.name() != "Gemm" && node->op.name().substr(0, 4) != "Conv") continue;
    ++products;
    EXPECT_TRUE(node->kernel.name.ends_with("-openblas")) << PrintNode(*node);
  }
  EXPECT_EQ(products, 5);  // conv, its weights' gradient, ip and its two gradients
}

TEST(AssignLayoutsTest, ImagesAreChannelsLastAndConvertedOnceEachWay) {
  const Net net(Small(""), {.keep_all = false, .seed = 1});
  EXPECT_EQ(testing::CountOps(net, "Reorder"), 3);  // into conv, into ip, and ip's gradient back
  for (const Node* node : net.graph().ScheduledNodes()) {
    if (node->op.name() == "Conv") {
      EXPECT_EQ(node->outputs[0]->desc.layout, Layout::kChannelsLast);
    } else if (node->op.name() == "Gemm") {
      EXPECT_EQ(node->inputs[0]->desc.layout, Layout::kPlain);
    }
  }
}

TEST(VerifierTest, NamesThePassAfterWhichAValueIsReadUnwritten) {
  CompileOptions options;
  options.device = MakeDevice(DeviceKind::kCpu);
  Graph graph(std::move(options));
  Value& x = graph.NewValue("x", Shape{2}, DType::kFloat, ValueKind::kActivation);
  Value& y = graph.NewValue("y", Shape{2}, DType::kFloat, ValueKind::kActivation);
  graph.Append(ops::Relu{}, {&x}, {&y}).layers = {0};
  try {
    VerifyGraph(graph, "lower-layers");
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("after pass 'lower-layers': 'x' is read before it is written"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace caffe
