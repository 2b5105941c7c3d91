#include "caffe/net/plan.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <set>
#include <utility>

#include "caffe/graph/weight_copies.hpp"
#include "caffe/net/build_graph.hpp"
#include "caffe/passes/pass.hpp"
#include "caffe/tensor/proto_dtype.hpp"

namespace caffe {
namespace {

std::optional<DType> DefaultType(bool has, Type type) {
  if (!has) return std::nullopt;
  return DTypeFromProto(type, "the net's default type");
}

CompileOptions OptionsFor(const NetSource& source, const PlanKey& key, size_t num_layers,
                          int recomputed_nodes) {
  const auto& [param, options, device, layers, ranges, exchange] = source;
  CompileOptions compile;
  compile.device = device;
  compile.is_training_phase = param.state().phase() == TRAIN;
  compile.weights_change = options.weights_change;
  compile.keep_all = options.keep_all;
  compile.with_backward = options.with_backward;
  compile.force_backward = param.force_backward() || num_layers < layers.size();
  compile.precision = DefaultsOf(param, options.precision);
  compile.ranges = ranges;
  compile.for_any_processor = options.for_any_processor;
  compile.kernels = {.strict_fp32 = options.strict_fp32 || param.strict_fp32(),
                     .deterministic = options.deterministic || param.deterministic()};
  compile.exchange = exchange;
  compile.recomputed_nodes = recomputed_nodes;
  compile.disabled_passes = options.disabled_passes;
  compile.input_shapes = key.input_shapes;
  compile.found_top_shapes = key.found_top_shapes;
  if (const char* dump_dir = std::getenv("CAFFE_DUMP_GRAPH")) {
    compile.dump_dir = StrCat(dump_dir, "/", param.name(), "-", Phase_Name(param.state().phase()));
  }
  return compile;
}

constexpr int kAll = std::numeric_limits<int>::max();

Plan Compile(const NetSource& source, const PlanKey& key, size_t num_layers, int recomputed_nodes) {
  auto graph = std::make_shared<Graph>(OptionsFor(source, key, num_layers, recomputed_nodes));
  const auto first = source.layers.begin();
  BuildGraph({first, first + static_cast<std::ptrdiff_t>(num_layers)}, graph.get());
  RunPasses(StandardPasses(), *graph);
  auto program = std::make_shared<const Program>(Assemble(*graph));
  return {key, std::move(graph), std::move(program)};
}

int64_t PeakOf(const NetSource& source, const Plan& plan) {
  return MemoryOf(*plan.graph, source.options.solver_states).total();
}

// The plan that takes the least memory. It need not be the one that recomputes most, because
// recomputed results take memory, too.
Plan Smallest(const NetSource& source, const PlanKey& key, size_t num_layers) {
  Plan smallest = Compile(source, key, num_layers, kAll);
  const int all = smallest.graph->recomputed_nodes;
  for (int eighths = 7; eighths > 0; --eighths) {
    Plan plan = Compile(source, key, num_layers, all * eighths / 8);
    if (PeakOf(source, plan) < PeakOf(source, smallest)) smallest = std::move(plan);
  }
  return smallest;
}

// A plan within the limit that recomputes few nodes. `most` fits and recomputes more.
Plan FewestWithin(int64_t limit, const NetSource& source, const PlanKey& key, Plan most) {
  const size_t num_layers = most.graph->calls.size();
  int too_few = 0, enough = most.graph->recomputed_nodes;
  while (enough - too_few > 1) {
    const int middle = too_few + (enough - too_few) / 2;
    Plan plan = Compile(source, key, num_layers, middle);
    if (PeakOf(source, plan) <= limit) {
      enough = middle;
      most = std::move(plan);
    } else {
      too_few = middle;
    }
  }
  return most;
}

}  // namespace

int64_t BatchOf(const Graph& graph) {
  for (const LayerCall& call : graph.calls) {
    if (call.bottoms.empty() && !call.tops.empty()) return call.tops[0]->desc.shape.LegacyExtent(0);
  }
  return 0;
}

PrecisionDefaults DefaultsOf(const NetParameter& param, Precision precision) {
  const bool has_own = param.has_default_forward_type() || param.has_default_backward_type() ||
                       param.has_default_forward_math() || param.has_default_backward_math();
  if (!has_own) return DefaultsOf(param.has_precision() ? param.precision() : precision);
  return {DefaultType(param.has_default_forward_type(), param.default_forward_type()),
          DefaultType(param.has_default_backward_type(), param.default_backward_type()),
          DefaultType(param.has_default_forward_math(), param.default_forward_math()),
          DefaultType(param.has_default_backward_math(), param.default_backward_math())};
}

Plan CompilePlan(const NetSource& source, const PlanKey& key, size_t num_layers) {
  Plan plan = Compile(source, key, num_layers, 0);
  const int64_t limit = source.options.memory_limit;
  if (limit == 0 || PeakOf(source, plan) <= limit) return plan;
  Plan smallest = Smallest(source, key, num_layers);
  const int64_t least = std::min(PeakOf(source, plan), PeakOf(source, smallest));
  const auto mebibytes = [](int64_t bytes) {
    return StrCat((bytes + (1 << 20) - 1) >> 20, " MiB");
  };
  Require(least <= limit, "net '", source.param.name(), "': memory_limit is ", mebibytes(limit),
          "; the smallest plan takes ", mebibytes(least), ", one that recomputes nothing ",
          mebibytes(PeakOf(source, plan)), ": raise the limit, or make the batch smaller");
  return FewestWithin(limit, source, key, std::move(smallest));
}

PlanMemory MemoryOf(const Graph& graph, int solver_states) {
  PlanMemory memory;
  memory.activations = graph.arena_bytes;
  memory.workspace = graph.workspace_bytes;
  std::set<const Value*> used;
  for (const Node* node : graph.ScheduledNodes()) {
    used.insert(node->inputs.begin(), node->inputs.end());
    for (Value* output : node->outputs) {
      if (output != nullptr) used.insert(output->root());
    }
  }
  const std::set<const Value*> only_copied = WeightsOnlyCopied(graph);
  for (const Value& value : graph.values()) {
    if (value.owner != nullptr) continue;
    const bool is_freed = only_copied.count(&value) > 0;
    const int64_t bytes = is_freed ? 0 : static_cast<int64_t>(value.desc.bytes());
    switch (value.kind) {
      case ValueKind::kParam:
        memory.parameter_count += value.desc.count();
        memory.parameters += bytes;
        memory.solver_state += solver_states * bytes;
        break;
      case ValueKind::kParamGrad:
        if (used.count(&value) > 0) memory.gradients += bytes;
        break;
      case ValueKind::kState:
        memory.states += bytes;
        break;
      case ValueKind::kExternal:
        memory.outputs += bytes;
        break;
      case ValueKind::kActivation:
        if (value.is_kept) memory.outputs += bytes;
        break;
    }
  }
  return memory;
}

std::vector<Plan> CompileTradeOffs(const NetSource& source, const PlanKey& key) {
  const size_t num_layers = source.layers.size();
  std::vector<Plan> plans;
  plans.push_back(Compile(source, key, num_layers, 0));
  Plan most = Compile(source, key, num_layers, kAll);
  const int all = most.graph->recomputed_nodes;
  for (const int eighths : {1, 2, 4, 6}) {
    const int nodes = all * eighths / 8;
    if (nodes > plans.back().graph->recomputed_nodes)
      plans.push_back(Compile(source, key, num_layers, nodes));
  }
  if (all > 0) plans.push_back(std::move(most));
  return plans;
}

}  // namespace caffe
