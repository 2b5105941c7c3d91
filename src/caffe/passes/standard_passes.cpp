#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "caffe/graph/printer.hpp"
#include "caffe/graph/verifier.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe {
namespace {

template <typename... Passes>
PassList MakeList(Passes... passes) {
  PassList list;
  (list.push_back(std::move(passes)), ...);
  return list;
}

void DumpGraph(const Graph& graph, size_t index, std::string_view pass) {
  const std::filesystem::path folder = graph.options.dump_dir;
  std::filesystem::create_directories(folder);
  char number[8];
  std::snprintf(number, sizeof(number), "%02zu", index);
  std::ofstream(folder / StrCat(number, "-", pass, ".txt")) << PrintGraph(graph);
}

void RunTimed(Pass& pass, Graph& graph) {
  PassReport report{std::string(pass.name())};
  report.nodes_before = graph.ScheduledNodes().size();
  const auto start = std::chrono::steady_clock::now();
  pass.Run(graph);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  report.nodes_after = graph.ScheduledNodes().size();
  graph.pass_reports.push_back(std::move(report));
}

// Throws for a misspelt name, which would otherwise leave a pass enabled unnoticed.
void CheckDisabled(const PassList& passes, const CompileOptions& options) {
  for (const std::string& name : options.disabled_passes) {
    std::string optional = "capture-graph";  // belongs to the executor
    bool is_known = name == optional;
    const auto know = [&](std::string_view known) {
      optional += StrCat(", ", known);
      is_known = is_known || known == name;
    };
    for (const auto& pass : passes) {
      if (pass->is_optional()) know(pass->name());
      for (const std::string_view row : pass->rows()) know(row);
    }
    Require(is_known, "'", name, "' is not a pass that can be disabled; those are: ", optional);
  }
}

}  // namespace

// The compiler's passes, in order. Later groups may assume everything that earlier ones
// established.
PassList StandardPasses() {
  using namespace passes;
  return MakeList(
      // Choice of computations and types.
      MakeInferShapes(), MakeMarkGradients(), MakeLowerLayers(), MakeFakeQuantize(),
      MakeLowerGradients(), MakeSplitOverRanks(), MakeAssignPrecision(),
      // Fusion into fewer steps.
      MakeFoldConstants(), MakeFuse(), MakeMarkAccumulation(),
      // Conversions between steps, and recomputation to save memory.
      MakeQuantize(), MakeInsertCasts(), MakeAssignLayouts(), MakeSimplifyConversions(),
      MakeRecomputeActivations(), MakeEliminateDeadNodes(), MakeKeepWeightCopies(),
      MakeChannelsLastFilters(),
      // Choice of kernels and memory.
      MakeFuseImages(), MakeSplitBatch(), MakeConcatInPlace(), MakeSelectKernels(),
      MakePlanMemory());
}

void RunPasses(const PassList& passes, Graph& graph) {
  CheckDisabled(passes, graph.options);
  Established established;
  for (size_t i = 0; i < passes.size(); ++i) {
    Pass& pass = *passes[i];
    if (pass.is_optional() && graph.options.is_disabled(pass.name())) continue;
    RunTimed(pass, graph);
    established.Add(pass.establishes());
    VerifyGraph(graph, pass.name(), established);
    if (!graph.options.dump_dir.empty()) DumpGraph(graph, i, pass.name());
  }
}

}  // namespace caffe
