#include "caffe/plan_report.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iomanip>
#include <set>
#include <sstream>

#include "caffe/error.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/graph/weight_copies.hpp"
#include "caffe/io/json.hpp"
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

template <typename Operands>
double Bytes(const Operands& values) {
  double bytes = 0;
  for (const Value* value : values)
    bytes += value == nullptr ? 0 : static_cast<double>(value->desc.bytes());
  return bytes;
}

// 12.3 MiB, 456 B.
std::string Size(double bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 3) bytes /= 1024, ++unit;
  char text[32];
  std::snprintf(text, sizeof(text), unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
  return text;
}

std::string Count(double count) {
  const char* const units[] = {"", " K", " M", " G"};
  int unit = 0;
  while (count >= 1000 && unit < 3) count /= 1000, ++unit;
  char text[32];
  std::snprintf(text, sizeof(text), unit == 0 ? "%.0f%s" : "%.1f%s", count, units[unit]);
  return text;
}

// Whether 16-bit operands are computed with as floats.
bool IsWidened(const PlanStep& step) {
  return step.kernel.ends_with("-widened");
}

// Bytes of this process that are in memory.
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
  std::set<const Node*> copies;  // not steps of an iteration
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

PlanMemory MemoryOfPlan(const Net& net, int solver_states) {
  PlanMemory memory = MemoryOf(net.graph(), solver_states);
  // A GPU's memory holds none of it.
  if (!net.is_allocated() && net.graph().options.device->is_host_accessible()) {
    memory.program = ResidentBytes();
  }
  return memory;
}

namespace {

// Of some steps, together.
struct PlanCost {
  int steps = 0;
  double flops = 0, bytes = 0;

  void Add(const Node& node) {
    ++steps;
    flops += node.Flops();
    bytes += node.BytesMoved();
  }
};

PlanCost CostOfRecomputation(const Graph& graph) {
  PlanCost cost;
  for (const Node* node : graph.ScheduledNodes()) {
    if (node->is_recomputation) cost.Add(*node);
  }
  return cost;
}

PlanCost CostOf(const Graph& graph) {
  PlanCost cost;
  for (const Node* node : graph.ScheduledNodes()) cost.Add(*node);
  return cost;
}

}  // namespace

std::string FormatTradeOffs(Net& net, int solver_states) {
  std::ostringstream out;
  out << "Time against memory (memory_limit):\n"
         "  peak memory   activations   recomputed steps   more FLOP   more bytes moved\n";
  std::optional<PlanCost> least;
  for (const Plan& plan : TrainingNet(net).TradeOffs()) {
    const PlanMemory memory = MemoryOf(*plan.graph, solver_states);
    const PlanCost cost = CostOf(*plan.graph);
    if (!least) least = cost;
    out << std::setw(13) << Size(static_cast<double>(memory.total())) << std::setw(14)
        << Size(static_cast<double>(memory.activations)) << std::setw(19)
        << CostOfRecomputation(*plan.graph).steps << std::fixed << std::setprecision(1)
        << std::setw(11) << 100 * (cost.flops / least->flops - 1) << "%" << std::setw(18)
        << 100 * (cost.bytes / least->bytes - 1) << "%\n";
  }
  return std::move(out).str();
}

static std::string FormatPasses(const Net& net) {
  std::ostringstream out;
  out << "Pass                      time    nodes before  after\n";
  for (const PlanPass& pass : PlanPasses(net)) {
    out << std::left << std::setw(22) << pass.name << std::right << std::fixed
        << std::setprecision(1) << std::setw(8) << pass.seconds * 1e3 << " ms" << std::setw(15)
        << pass.nodes_before << std::setw(7) << pass.nodes_after << "\n";
  }
  return std::move(out).str();
}

std::string FormatPlan(const Net& net, int solver_states, bool with_passes) {
  std::ostringstream out;
  double flops = 0;
  out << "Plan of '" << net.name() << "' (" << Phase_Name(net.phase()) << ") on "
      << net.graph().options.device->description() << "\n\n";
  int index = 0;
  for (const PlanStep& step : PlanSteps(net)) {
    flops += step.flops;
    const char* direction = step.is_recomputation ? " R " : step.is_backward ? " B " : " F ";
    out << std::setw(4) << index++ << direction << step.layers << ": " << step.op << "\n"
        << "       " << step.kernel << "   " << step.operands << "   " << Size(step.bytes) << ", "
        << Count(step.flops) << "FLOP\n";
    if (!step.precision_note.empty()) out << "       " << step.precision_note << "\n";
    for (const std::string& refusal : step.refusals) out << "       not " << refusal << "\n";
    if (!step.algorithms.empty()) {
      out << "       " << step.algorithms.front() << ", first of " << step.algorithms.size()
          << " algorithms\n";
    }
  }
  if (std::ranges::any_of(PlanSteps(net), IsWidened)) {
    out << "\nThis processor has no arithmetic for the 16-bit type of steps whose kernels end in "
           "-widened: it saves memory there, but no time\n";
  }
  double copied = 0;
  int copies = 0;
  for (const WeightCopy& copy : WeightCopies(net.graph())) {
    if (!copy.is_read) continue;
    ++copies;
    copied += Bytes(copy.results);
  }
  if (copies > 0) {
    out << "\nWeights in other types and layouts, or folded: " << copies << " copies, "
        << Size(copied) << ", made anew when weights change\n";
  }
  const PlanMemory memory = MemoryOfPlan(net, solver_states);
  out << "\nSteps:        " << index << ", " << Count(flops) << "FLOP an iteration\n";
  if (const PlanCost again = CostOfRecomputation(net.graph()); again.steps > 0) {
    out << "Recomputed:   " << again.steps << " steps of forward (R), " << Count(again.flops)
        << "FLOP, " << Size(again.bytes) << " to and from memory\n";
  }
  out << "Parameters:   " << memory.parameter_count << " ("
      << Size(static_cast<double>(memory.parameters)) << ")\n"
      << "Gradients:    " << Size(static_cast<double>(memory.gradients)) << "\n"
      << "Solver state: " << Size(static_cast<double>(memory.solver_state)) << "\n"
      << "In and out:   " << Size(static_cast<double>(memory.outputs)) << "\n"
      << "Activations:  " << Size(static_cast<double>(memory.activations)) << "\n"
      << "Workspace:    " << Size(static_cast<double>(memory.workspace)) << "\n"
      << "Peak memory:  " << Size(static_cast<double>(memory.total())) << " (" << memory.total()
      << " bytes)\n";
  if (memory.program > 0)
    out << "  with this program's own " << Size(static_cast<double>(memory.program)) << "\n";
  if (const std::optional<size_t> free = net.graph().options.device->FreeBytes())
    out << "Free on it:   " << Size(static_cast<double>(*free)) << "\n";
  if (with_passes) out << "\n" << FormatPasses(net);
  return std::move(out).str();
}

std::string FormatPlanJson(const Net& net, int solver_states) {
  JsonObject root;
  MakeJsonList(&root, "steps");
  for (const PlanStep& step : PlanSteps(net)) {
    JsonObject* object = AddJson(&root, "steps");
    PutJson(object, "layers", step.layers);
    PutJson(object, "direction", step.is_backward ? "backward" : "forward");
    if (step.is_recomputation) PutJson(object, "recomputes", 1);
    PutJson(object, "op", step.op);
    PutJson(object, "kernel", step.kernel);
    PutJson(object, "operands", step.operands);
    PutJson(object, "bytes", step.bytes);
    PutJson(object, "flops", step.flops);
    if (!step.precision_note.empty()) PutJson(object, "precision_note", step.precision_note);
    MakeJsonList(object, "refusals");
    for (const std::string& refusal : step.refusals) AddJson(object, "refusals", refusal);
    MakeJsonList(object, "algorithms");
    for (const std::string& algorithm : step.algorithms) AddJson(object, "algorithms", algorithm);
  }
  for (const PlanPass& pass : PlanPasses(net)) {
    JsonObject* object = AddJson(&root, "passes");
    PutJson(object, "name", pass.name);
    PutJson(object, "seconds", pass.seconds);
    PutJson(object, "nodes_before", pass.nodes_before);
    PutJson(object, "nodes_after", pass.nodes_after);
  }
  const PlanMemory memory = MemoryOfPlan(net, solver_states);
  JsonObject* bytes = (*root.mutable_fields())["memory"].mutable_struct_value();
  PutJson(bytes, "parameters", memory.parameters);
  PutJson(bytes, "gradients", memory.gradients);
  PutJson(bytes, "solver_state", memory.solver_state);
  PutJson(bytes, "in_and_out", memory.outputs);
  PutJson(bytes, "activations", memory.activations);
  PutJson(bytes, "workspace", memory.workspace);
  PutJson(bytes, "program", memory.program);
  PutJson(bytes, "total", memory.total());
  PutJson(&root, "parameter_count", memory.parameter_count);
  PutJson(&root, "net", net.name());
  return FormatJson(root);
}

void SetProfiling(Net& net, bool on) {
  TrainingNet(net).executor().set_profiling(on);
}

std::vector<LayerTime> LayerTimes(Net& net) {
  std::vector<LayerTime> times;
  for (const std::string& name : net.layer_names()) times.push_back({name});
  const Executor& executor = TrainingNet(net).executor();
  for (size_t i = 0; i < executor.step_times().size(); ++i) {
    const Program::Step& step = executor.program().steps[i];
    LayerTime& time = times[step.layer];
    (step.direction == Direction::kForward ? time.forward_ms : time.backward_ms) +=
        executor.step_times()[i].seconds * 1e3;
  }
  return times;
}

}  // namespace caffe
