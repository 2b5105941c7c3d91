// Prints a plan as text, for `caffe plan`.
#include <algorithm>
#include <cstdio>
#include <iomanip>
#include <optional>
#include <sstream>

#include "caffe/core/join_refusals.hpp"
#include "caffe/error.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/graph/weight_copies.hpp"
#include "caffe/net/training_net.hpp"
#include "caffe/plan_report.hpp"

namespace caffe {
namespace {

template <typename Operands>
double Bytes(const Operands& values) {
  double bytes = 0;
  for (const Value* value : values)
    bytes += value == nullptr ? 0 : static_cast<double>(value->desc.bytes());
  return bytes;
}

// Formats bytes as "12.3 MiB" or "456 B".
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

// True if 16-bit operands are converted and computed as floats.
bool IsWidened(const PlanStep& step) {
  return step.kernel.ends_with("-widened");
}

std::string Milliseconds(double milliseconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.*f ms", milliseconds < 10 ? 3 : 1, milliseconds);
  return text;
}

// Total cost of some steps.
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

std::string FormatPasses(const Net& net) {
  std::ostringstream out;
  out << "Pass                      time    nodes before  after\n";
  for (const PlanPass& pass : PlanPasses(net)) {
    out << std::left << std::setw(22) << pass.name << std::right << std::fixed
        << std::setprecision(1) << std::setw(8) << pass.seconds * 1e3 << " ms" << std::setw(15)
        << pass.nodes_before << std::setw(7) << pass.nodes_after << "\n";
  }
  return std::move(out).str();
}

// "a, b, c and 49 more: reason" from a refusal of many layers.
std::string Shortened(const std::string& refusal) {
  constexpr int kMostNames = 3;
  const size_t end = refusal.find(": ");
  size_t cut = 0;
  for (int i = 0; i < kMostNames && cut < end; ++i) cut = refusal.find(", ", cut + 1);
  if (cut >= end) return refusal;
  int others = 0;
  for (size_t at = cut; at < end; at = refusal.find(", ", at + 1)) ++others;
  return StrCat(refusal.substr(0, cut), " and ", others, " more", refusal.substr(end));
}

std::string FormatFusions(const Net& net) {
  std::ostringstream out;
  out << "Fusion                    applied\n";
  for (const PlanFusion& fusion : PlanFusions(net)) {
    out << std::left << std::setw(26) << fusion.row << std::right << std::setw(7) << fusion.fired
        << "\n";
    for (const std::string& refusal : fusion.refusals)
      out << "  not " << Shortened(refusal) << "\n";
  }
  return std::move(out).str();
}

// ", 0.012 ms" if known, else empty.
std::string TimeOfStep(const PlanReport& report, size_t step) {
  if (!report.times || !report.times->step_ms[step]) return "";
  return ", " + Milliseconds(*report.times->step_ms[step]);
}

std::string FormatTimes(const PlanTimes& times) {
  std::ostringstream out;
  size_t width = 5;
  for (const LayerTime& time : times.layers) width = std::max(width, time.layer.size());
  out << std::left << std::setw(static_cast<int>(width)) << "Layer" << std::right << std::setw(12)
      << "forward" << std::setw(12) << "backward"
      << "\n";
  for (const LayerTime& time : times.layers) {
    if (time.forward_ms + time.backward_ms == 0) continue;
    out << std::left << std::setw(static_cast<int>(width)) << time.layer << std::right
        << std::setw(12) << Milliseconds(time.forward_ms) << std::setw(12)
        << Milliseconds(time.backward_ms) << "\n";
  }
  const auto line = [&](const char* name, double milliseconds) {
    if (milliseconds > 0)
      out << std::left << std::setw(14) << name << Milliseconds(milliseconds) << "\n";
  };
  out << "\n";
  line("Forward:", times.forward_ms);
  line("Backward:", times.backward_ms);
  line("Weights:", times.weight_copies_ms);
  line("Update:", times.update_ms);
  out << "Estimated:    " << Milliseconds(times.milliseconds()) << " per iteration";
  if (const auto rate = times.ImagesPerSecond()) out << ", " << Count(*rate) << "images/s";
  out << " (" << times.measured << " steps measured now";
  if (times.host_calls > 0) out << ", " << times.host_calls << " calls of the host not counted";
  out << ")\n";
  return std::move(out).str();
}

// Omits lines of rare items that are 0.
std::string FormatMemory(const PlanMemory& memory) {
  std::ostringstream out;
  const auto line = [&](const char* name, int64_t bytes) {
    out << std::left << std::setw(14) << name << Size(static_cast<double>(bytes)) << "\n";
  };
  const auto line_of_some = [&](const char* name, int64_t bytes) {
    if (bytes > 0) line(name, bytes);
  };
  out << "Parameters:   " << memory.parameter_count << " ("
      << Size(static_cast<double>(memory.parameters)) << ")\n";
  line("Gradients:", memory.gradients);
  line("Solver state:", memory.solver_state);
  line("In and out:", memory.outputs);
  line_of_some("States:", memory.states);
  line("Activations:", memory.activations);
  line("Workspace:", memory.workspace);
  line_of_some("Test nets:", memory.test_nets);
  line_of_some("Read ahead:", memory.read_ahead);
  line_of_some("Databases:", memory.databases);
  line_of_some("Snapshot:", memory.snapshot);
  line_of_some("Program:", memory.program);
  line_of_some("Running:", memory.running);
  out << "Peak memory:  " << Size(static_cast<double>(memory.total())) << " (" << memory.total()
      << " bytes)\n";
  return std::move(out).str();
}

}  // namespace

std::string FormatPlan(const Net& net, const PlanReport& report) {
  std::ostringstream out;
  double flops = 0;
  out << "Plan of '" << net.name() << "' (" << Phase_Name(net.phase()) << ") on "
      << net.graph().options.device->description() << "\n\n";
  size_t index = 0;
  const std::vector<PlanStep> steps = PlanSteps(net);
  for (const PlanStep& step : steps) {
    flops += step.flops;
    const char* direction = step.is_recomputation ? " R " : step.is_backward ? " B " : " F ";
    out << std::setw(4) << index << direction << step.layers << ": " << step.op << "\n"
        << "       " << step.kernel << "   " << step.operands << "   " << Size(step.bytes) << ", "
        << Count(step.flops) << "FLOP" << TimeOfStep(report, index)
        << (step.rounds == 1 ? "" : StrCat(", in ", step.rounds, " rounds")) << "\n";
    ++index;
    if (!step.precision_note.empty()) out << "       " << step.precision_note << "\n";
    for (const std::string& refusal : JoinRefusals(step.refusals))
      out << "       not " << refusal << "\n";
    if (!step.algorithms.empty()) {
      out << "       " << step.algorithms.front() << ", first of " << step.algorithms.size()
          << " algorithms\n";
    }
  }
  if (std::ranges::any_of(steps, IsWidened)) {
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
        << Size(copied) << ", renewed when weights change\n";
  }
  out << "\nSteps:        " << index << ", " << Count(flops) << "FLOP an iteration\n";
  if (const PlanCost again = CostOfRecomputation(net.graph()); again.steps > 0) {
    out << "Recomputed:   " << again.steps << " steps of forward (R), " << Count(again.flops)
        << "FLOP, " << Size(again.bytes) << " to and from memory\n";
  }
  out << FormatMemory(report.memory);
  if (const std::optional<size_t> free = net.graph().options.device->FreeBytes())
    out << "Free on it:   " << Size(static_cast<double>(*free)) << "\n";
  if (report.times) out << "\n" << FormatTimes(*report.times);
  if (report.with_passes) out << "\n" << FormatPasses(net) << "\n" << FormatFusions(net);
  return std::move(out).str();
}

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

}  // namespace caffe
