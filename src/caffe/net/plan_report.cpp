#include "caffe/plan_report.hpp"

#include <unistd.h>

#include <fstream>
#include <set>

#include "caffe/core/join_refusals.hpp"
#include "caffe/error.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/graph/weight_copies.hpp"
#include "caffe/net/data_memory.hpp"
#include "caffe/net/training_net.hpp"

namespace caffe {
namespace {

std::string Describe(const Value* value) {
  if (value == nullptr) return "-";
  const TensorDesc& desc = value->desc;
  return StrCat(desc.shape, " ", Name(desc.dtype), desc.layout == Layout::kPlain ? "" : " nhwc");
}

template <typename Operands>
std::string Describe(const Operands& values) {
  std::string text;
  for (const Value* value : values) text += (text.empty() ? "" : ", ") + Describe(value);
  return text;
}

// Library code, stacks and small objects that are first touched by running: see docs/memory.md.
constexpr int64_t kRunningBytes = int64_t{6} << 20;

// Resident memory of this process, in bytes.
int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t pages = 0, resident = 0;
  statm >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace

std::vector<PlanStep> PlanSteps(const Net& net) {
  const Graph& graph = net.graph();
  std::vector<PlanStep> steps;
  std::set<const Node*> copies;  // no steps of an iteration
  for (const WeightCopy& copy : WeightCopies(graph)) copies.insert(copy.node);
  for (const Node* node : graph.ScheduledNodes()) {
    if (copies.count(node) > 0) continue;
    PlanStep& step = steps.emplace_back();
    for (const int layer : node->layers)
      step.layers += (step.layers.empty() ? "" : "+") + graph.LayerName(layer);
    step.is_backward = node->direction == Direction::kBackward;
    step.is_recomputation = node->is_recomputation;
    const std::string attributes = node->op.Attributes();
    step.op = std::string(node->op.name()) + (attributes.empty() ? "" : "[" + attributes + "]");
    step.kernel = node->kernel.name;
    step.refusals = node->refusals;
    step.precision_note = node->precision_note;
    step.algorithms = node->kernel.algorithms;
    step.operands = Describe(node->inputs) + " -> " + Describe(node->outputs);
    step.rounds = node->rounds();
    step.bytes = node->BytesMoved();
    step.flops = node->Flops();
  }
  return steps;
}

std::vector<PlanPass> PlanPasses(const Net& net) {
  std::vector<PlanPass> passes;
  for (const PassReport& report : net.graph().pass_reports)
    passes.push_back({report.name, report.seconds, report.nodes_before, report.nodes_after});
  return passes;
}

std::vector<PlanFusion> PlanFusions(const Net& net) {
  std::vector<PlanFusion> fusions;
  for (const FusionReport& report : net.graph().fusion_reports) {
    if (fusions.empty() || fusions.back().row != report.row) fusions.push_back({report.row});
    PlanFusion& fusion = fusions.back();
    fusion.fired += report.fired;
    fusion.refusals.insert(fusion.refusals.end(), report.refusals.begin(), report.refusals.end());
  }
  for (PlanFusion& fusion : fusions) fusion.refusals = JoinRefusals(fusion.refusals);
  return fusions;
}

PlanMemory MemoryOfPlan(const Net& net, int solver_states) {
  PlanMemory memory = MemoryOf(net.graph(), solver_states);
  // A GPU's memory contains none of the following.
  if (net.is_allocated() || !net.graph().options.device->is_host_accessible()) return memory;
  memory.program = ResidentBytes();
  memory.running = kRunningBytes;
  DataMemory data;
  data.Add(net, kEndless);
  data.PutInto(&memory);
  return memory;
}

void SetProfiling(Net& net, bool on) {
  TrainingNet(net).executor().profiler().set_on(on);
}

std::vector<double> StepMilliseconds(Net& net) {
  const Executor& executor = TrainingNet(net).executor();
  std::vector<double> milliseconds;
  const size_t copies = executor.program().copies.size();  // these come first and are not steps
  for (size_t i = copies; i < executor.profiler().times().size(); ++i) {
    const StepTime& time = executor.profiler().times()[i];
    const int64_t rounds = executor.program().rounds(executor.program().steps[i]);
    milliseconds.push_back(time.runs == 0 ? 0
                                          : 1e3 * time.seconds * static_cast<double>(rounds) /
                                                static_cast<double>(time.runs));
  }
  return milliseconds;
}

PlanCaptures CapturesOf(Net& net) {
  const CapturedSegments::Statistics captured = TrainingNet(net).executor().captured();
  return {captured.segments, captured.nodes, captured.refused, captured.reason};
}

std::vector<LayerTime> LayerTimes(Net& net) {
  std::vector<LayerTime> times;
  for (const std::string& name : net.layer_names()) times.push_back({name});
  const Executor& executor = TrainingNet(net).executor();
  for (size_t i = 0; i < executor.profiler().times().size(); ++i) {
    const Program::Step& step = executor.program().steps[i];
    LayerTime& time = times[step.layer];
    (step.direction == Direction::kForward ? time.forward_ms : time.backward_ms) +=
        executor.profiler().times()[i].seconds * 1e3;
  }
  return times;
}

}  // namespace caffe
